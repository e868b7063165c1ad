"""The native half of the package. Its names are those of `resemblance`."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field
from datetime import date
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from .exact import SharedPassage, SharedSpans
from .explanation import Explanation
from .reports import (
    BackupReport,
    BandingChoice,
    BulkReport,
    CheckReport,
    CompactReport,
    Evaluation,
    EvictReport,
    ExportReport,
    FrequentPassage,
    ImportReport,
    LeftOut,
    Overlaps,
    Progress,
    RebandReport,
    RepairReport,
    Stats,
    StoredDocument,
    TableChoice,
    Trimmed,
)
from .schema import Containment, MinHash, SimHash, Text, Vector

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _ArrayLike(Protocol):
    def __array__(self) -> NDArray[Any]: ...

_Path: TypeAlias = str | os.PathLike[str]
_Key: TypeAlias = str | bytes
_Document: TypeAlias = str | Signature
_Documents: TypeAlias = Iterable[_Document] | Signatures | _ArrowStream | _ArrowArray
_Vector: TypeAlias = Sequence[float] | NDArray[Any] | _ArrayLike
_Vectors: TypeAlias = Sequence[Sequence[float]] | NDArray[Any] | _ArrayLike | _ArrowStream | _ArrowArray
_Keys: TypeAlias = Iterable[_Key | float | date | None] | _ArrowStream | _ArrowArray
_By: TypeAlias = Literal["minhash", "vector", "simhash", "any", "both"]
_DropRule: TypeAlias = Literal["similarity", "distance", "both", "cluster", "contained"]
_FoundFields: TypeAlias = tuple[
    int, float | None, bool, int | None, float | None, float | None, _DropRule
]
_ComparedFields: TypeAlias = tuple[int, int, float, float, float]
_Callback: TypeAlias = Callable[[Progress], object]
_Answer = TypeVar("_Answer")

__version__: str
FORMAT_VERSION: int

@final
class Schema:
    """The rules by which texts become signatures, and by which signatures are indexed and compared.

    A schema can be compared, hashed and pickled. It makes signatures in any process and thread, without
    a store.
    """

    def __new__(
        cls,
        *,
        text: Text | None = None,
        minhash: MinHash | None = None,
        vector: Vector | None = None,
        simhash: SimHash | None = None,
        containment: Containment | None = None,
        near: Literal["any", "both"] = "any",
        seed: int | None = None,
        expected_documents: int | None = None,
        empty_documents: Literal["distinct", "alike"] = "distinct",
        html: bool = False,
        exact: bool = False,
        exact_bits: int | None = None,
        clusters: bool = False,
        cluster_threshold: float | None = None,
        cluster_distance: int | None = None,
        cluster_linkage: Literal["single", "star", "complete"] = "single",
    ) -> Schema: ...
    @classmethod
    def from_bytes(cls, bytes: bytes) -> Schema: ...
    def to_bytes(self) -> bytes: ...
    def with_weights(self, texts: _Documents) -> Schema: ...
    def sketch(self, text: str) -> Signature: ...
    def sketch_many(self, texts: _Documents, *, threads: int | None = None) -> Signatures: ...
    def sketch_features(self, features: Iterable[_Key]) -> Signature: ...
    def sketch_features_many(
        self, sets: Iterable[Iterable[_Key]], *, threads: int | None = None
    ) -> Signatures: ...
    def sketch_vector(self, vector: _Vector, *, text: str | None = None) -> Signature: ...
    def sketch_vectors(
        self, vectors: _Vectors, *, texts: Iterable[str] | None = None, threads: int | None = None
    ) -> Signatures: ...
    def sketch_weighted(self, weights: Mapping[str, float] | Mapping[bytes, float]) -> Signature: ...
    def features(self, text: str) -> NDArray[np.uint64]: ...
    def extract(self, document: str) -> str: ...
    def probability(self, similarity: float) -> float: ...
    @property
    def text(self) -> Text | None: ...
    @property
    def minhash(self) -> MinHash | None: ...
    @property
    def vector(self) -> Vector | None: ...
    @property
    def simhash(self) -> SimHash | None: ...
    @property
    def containment(self) -> Containment | None: ...
    @property
    def near(self) -> Literal["any", "both"]: ...
    def drop_rule(self, found: Match) -> _DropRule: ...
    @property
    def seed(self) -> int: ...
    @property
    def html(self) -> bool: ...
    @property
    def expected_documents(self) -> int: ...
    @property
    def empty_documents(self) -> Literal["distinct", "alike"]: ...
    @property
    def exact(self) -> bool: ...
    @property
    def exact_bits(self) -> int | None: ...
    @property
    def clusters(self) -> bool: ...
    @property
    def cluster_threshold(self) -> float | None: ...
    @property
    def cluster_distance(self) -> int | None: ...
    @property
    def cluster_linkage(self) -> Literal["single", "star", "complete"] | None: ...
    @property
    def certainty(self) -> tuple[Literal["truth", "estimate", "signature"], float] | None: ...
    @property
    def is_weighted(self) -> bool: ...
    @property
    def recipe_fingerprint(self) -> int: ...
    @property
    def self_test(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Signature:
    """The signature of one document. It can be compared, hashed and pickled."""

    @classmethod
    def from_minhash(
        cls, values: Sequence[int] | NDArray[np.uint32], *, schema: Schema | None = None
    ) -> Signature: ...
    @classmethod
    def from_simhash(cls, fingerprint: int | str, bits: int | None = None) -> Signature: ...
    @classmethod
    def from_bottom_k(cls, max_count: int, hashes: Sequence[int] | NDArray[np.uint64]) -> Signature: ...
    @classmethod
    def from_bytes(cls, schema: Schema, bytes: bytes) -> Signature: ...
    def to_bytes(self) -> bytes: ...
    def bucket_codes(self) -> list[int]: ...
    def jaccard(self, other: Signature) -> float: ...
    def hamming(self, other: Signature) -> int: ...
    def merge(self, other: Signature) -> Signature: ...
    def one_hot(self) -> NDArray[np.uint64]: ...
    @property
    def minhash(self) -> NDArray[np.uint32] | None: ...
    @property
    def bottom_k(self) -> NDArray[np.uint64] | None: ...
    @property
    def value_bits(self) -> int | None: ...
    @property
    def vector(self) -> NDArray[np.float32] | None: ...
    @property
    def simhash(self) -> int | None: ...
    @property
    def simhash_bits(self) -> int | None: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def schema(self) -> Schema | None: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Signatures(Sequence[Signature]):
    """Signatures of many documents: a sequence, with their values as NumPy arrays."""

    @classmethod
    def from_minhash(
        cls, values: NDArray[np.uint32], *, schema: Schema | None = None
    ) -> Signatures: ...
    @classmethod
    def from_simhash(
        cls,
        fingerprints: NDArray[np.uint64] | NDArray[np.int64] | Iterable[int | str] | _ArrowStream | _ArrowArray,
        bits: int | None = None,
    ) -> Signatures: ...
    @classmethod
    def from_bytes(cls, schema: Schema, rows: Iterable[bytes]) -> Signatures: ...
    def to_bytes(self) -> list[bytes]: ...
    @property
    def minhash(self) -> NDArray[np.uint32] | None: ...
    @property
    def simhash(self) -> NDArray[np.uint64] | None: ...
    @property
    def schema(self) -> Schema | None: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __len__(self) -> int: ...
    def index(self, value: object, start: int = 0, stop: int | None = None) -> int: ...
    def count(self, value: object) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Signature: ...
    @overload
    def __getitem__(self, index: slice, /) -> Signatures: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Match:
    """A stored document that is near the document of the query."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    @property
    def id(self) -> int: ...
    @property
    def key(self) -> str | None: ...
    @property
    def key_bytes(self) -> bytes | None: ...
    @property
    def similarity(self) -> float | None: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def distance(self) -> int | None: ...
    @property
    def stamp(self) -> int: ...
    @property
    def payload(self) -> bytes | None: ...

@final
class Matches(Sequence[Match]):
    """The documents near one document, best first."""

    def __iter__(self) -> Iterator[Match]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_arrow(self) -> Any: ...
    @property
    def recall(self) -> float | None: ...
    @property
    def certainty(self) -> tuple[Literal["truth", "estimate", "signature"], float] | None: ...
    @property
    def scope(self) -> Literal["candidates", "short buckets", "scan"]: ...
    @property
    def candidates(self) -> int: ...
    @property
    def budget_exceeded(self) -> int | None: ...
    def __len__(self) -> int: ...
    def index(self, value: object, start: int = 0, stop: int | None = None) -> int: ...
    def count(self, value: object) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Match: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Match]: ...

@final
class Novelty:
    """The result of `insert_if_new`. It is true if the document was inserted."""

    @property
    def is_new(self) -> bool: ...
    @property
    def key_exists(self) -> bool: ...
    @property
    def id(self) -> int: ...
    @property
    def found(self) -> Match | None: ...
    @property
    def budget_exceeded(self) -> int | None: ...
    def __bool__(self) -> bool: ...

@final
class Upserted:
    """The result of `upsert`."""

    @property
    def id(self) -> int: ...
    @property
    def replaced(self) -> int | None: ...
    @property
    def revision(self) -> Literal["first", "unchanged", "near", "different"]: ...
    @property
    def last(self) -> Match | None: ...

@final
class Record:
    """A stored document."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    @property
    def id(self) -> int: ...
    @property
    def key(self) -> str | None: ...
    @property
    def key_bytes(self) -> bytes | None: ...
    @property
    def signature(self) -> Signature: ...
    @property
    def stamp(self) -> int: ...
    @property
    def payload(self) -> bytes: ...

@final
class Pair:
    """Two documents that are near each other; `a` is the earlier one."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    @property
    def a(self) -> int: ...
    @property
    def b(self) -> int: ...
    @property
    def key_a(self) -> str | None: ...
    @property
    def key_b(self) -> str | None: ...
    @property
    def similarity(self) -> float | None: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def distance(self) -> int | None: ...

@final
class Pairs(Iterator[Pair]):
    """Iterates over near pairs while a thread finds them."""

    def __next__(self) -> Pair: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_arrow(self) -> Any: ...
    @property
    def left_out(self) -> LeftOut | None: ...
    @property
    def certainty(self) -> tuple[Literal["truth", "estimate", "signature"], float] | None: ...

@final
class Cluster(Sequence[int]):
    """Documents that are linked by near pairs, as a sequence of their ids."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    @property
    def ids(self) -> list[int]: ...
    @property
    def keys(self) -> list[str | None]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __len__(self) -> int: ...
    def index(self, value: object, start: int = 0, stop: int | None = None) -> int: ...
    def count(self, value: object) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[int]: ...

@final
class ClusterChange:
    """A change of a cluster that a store keeps."""

    @property
    def position(self) -> int: ...
    @property
    def commit(self) -> int: ...
    @property
    def cluster(self) -> int: ...
    @property
    def event(self) -> Literal["joined", "left", "united", "split", "ended"]: ...
    @property
    def other(self) -> int | None: ...
    @property
    def document(self) -> int | None: ...
    @property
    def key(self) -> str | None: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class ClusterChanges(Iterator[ClusterChange]):
    """Changes of clusters, in the order in which they were made."""

    def __iter__(self) -> ClusterChanges: ...
    def __next__(self) -> ClusterChange: ...
    @property
    def position(self) -> int: ...

@final
class Clusters(Sequence[Cluster]):
    """All clusters, in the order of their first documents."""

    def __iter__(self) -> Iterator[Cluster]: ...
    def arrays(self) -> dict[str, NDArray[np.uint64]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_arrow(self) -> Any: ...
    @property
    def suspicious(self) -> list[tuple[int, int, float]]: ...
    @property
    def left_out(self) -> LeftOut: ...
    @property
    def certainty(self) -> tuple[Literal["truth", "estimate", "signature"], float] | None: ...
    def __len__(self) -> int: ...
    def index(self, value: object, start: int = 0, stop: int | None = None) -> int: ...
    def count(self, value: object) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Cluster: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[Cluster]: ...

@final
class Filter:
    """The documents that a question is about: those that meet every condition given."""

    def __new__(
        cls,
        *,
        newer_than: int | None = None,
        older_than: int | None = None,
        key_prefix: _Key | None = None,
        matching: Callable[[StoredDocument], bool] | None = None,
    ) -> Filter: ...

@final
class Records(Iterator[Any]):
    """Iterates over documents, or over their keys."""

    def __next__(self) -> Any: ...

class _Reads:
    """The methods that stores and snapshots share."""

    @property
    def schema(self) -> Schema: ...
    def query(
        self,
        document: _Document | None = None,
        /,
        *,
        key: _Key | None = None,
        threshold: float | None = None,
        max_distance: int | None = None,
        by: _By | None = None,
        limit: int | None = None,
        payloads: bool = False,
        accept_lower_recall: bool = False,
        margin: float | None = None,
        scan: bool = False,
        probe_budget: int | None = None,
        filter: Filter | None = None,
    ) -> Matches: ...
    def query_many(
        self,
        documents: _Documents,
        *,
        threshold: float | None = None,
        max_distance: int | None = None,
        by: _By | None = None,
        limit: int | None = None,
        payloads: bool = False,
        accept_lower_recall: bool = False,
        margin: float | None = None,
        probe_budget: int | None = None,
        filter: Filter | None = None,
        threads: int | None = None,
    ) -> list[Matches]: ...
    def nearest(
        self,
        document: _Document,
        n: int = 10,
        /,
        *,
        by: Literal["minhash", "vector", "simhash"] | None = None,
        min_recall: float | None = None,
        scan: bool = True,
        payloads: bool = False,
        filter: Filter | None = None,
        verify: Callable[[int], float | None] | None = None,
    ) -> Matches: ...
    def nearest_many(
        self,
        documents: _Documents,
        n: int = 10,
        /,
        *,
        by: Literal["minhash", "vector", "simhash"] | None = None,
        min_recall: float | None = None,
        scan: bool = True,
        payloads: bool = False,
        filter: Filter | None = None,
        verify: Callable[[int, int], float | None] | None = None,
    ) -> list[Matches]: ...
    def near(
        self,
        document: _Document,
        radius: float,
        factor: float = 1.0,
        /,
        *,
        by: Literal["minhash", "vector", "simhash"] | None = None,
        min_recall: float | None = None,
        scan: bool = True,
        payloads: bool = False,
        filter: Filter | None = None,
        verify: Callable[[int], float | None] | None = None,
    ) -> Matches: ...
    def cluster_of(self, key: _Key) -> int | None: ...
    def members(self, cluster: int) -> Cluster: ...
    def largest_clusters(self, n: int = 10) -> list[tuple[int, int]]: ...
    def cluster_changes(self, since: int = 0) -> ClusterChanges: ...
    def cluster_position(self) -> int: ...
    def clusters_since(self, stamp: int, n: int = 100) -> list[tuple[int, int, int, int]]: ...
    def representative(self, cluster: int, rule: str = "first") -> Record | None: ...
    def cluster_edges(self, cluster: int) -> list[Pair]: ...
    def cluster_path(self, a: _Key, b: _Key) -> list[Pair] | None: ...
    def suspicious_clusters(self) -> list[tuple[int, int, float]]: ...
    def get(self, key: _Key) -> Record | None: ...
    def records(self, *, filter: Filter | None = None) -> Iterator[Record]: ...
    def pairs(
        self,
        *,
        threshold: float | None = None,
        max_distance: int | None = None,
        by: _By | None = None,
        accept_lower_recall: bool = False,
        margin: float | None = None,
        threads: int | None = None,
        max_bucket: int | None = None,
        filter: Filter | None = None,
        keys: bool = True,
        progress: _Callback | None = None,
    ) -> Pairs: ...
    def clusters(
        self,
        *,
        threshold: float | None = None,
        max_distance: int | None = None,
        by: _By | None = None,
        accept_lower_recall: bool = False,
        margin: float | None = None,
        threads: int | None = None,
        max_bucket: int | None = None,
        filter: Filter | None = None,
        progress: _Callback | None = None,
    ) -> Clusters: ...
    def stats(self, *, progress: _Callback | None = None) -> Stats: ...
    def check(self, *, progress: _Callback | None = None) -> CheckReport: ...
    def backup(self, path: _Path, *, progress: _Callback | None = None) -> BackupReport: ...
    def export(self, path: _Path, *, progress: _Callback | None = None) -> ExportReport: ...
    def __getitem__(self, key: _Key, /) -> Record: ...
    def position(self, name: str) -> bytes | None: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __iter__(self) -> Iterator[str | None]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...

@final
class Snapshot(_Reads):
    """The store at one moment. Later writes do not change it. Closing the store also closes the
    snapshot.
    """

    def close(self) -> None: ...
    def __enter__(self) -> Snapshot: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

    def holders(
        self, documents: _Documents, lost: float, *, threads: int | None = None
    ) -> tuple[list[_ComparedFields | None], list[_ComparedFields]]:
        """Returns, for each document, the stored one that has its features, all but the share `lost` of
        its distinct ones, and the stored ones that were compared and lack more: as tuples of the index
        of the document, the id, the similarity, and of the features of each the share that both have.
        The store must be exact. Stored documents are compared if they share a bucket with the document,
        or, with `Containment` in the schema, a kept hash; without it most of the longer ones are missed.
        """

    def contained_in(
        self,
        document: _Document,
        /,
        *,
        min_share: float | None = None,
        min_shared: int | None = None,
        limit: int | None = None,
        max_document_frequency: int | None = None,
        filter: Filter | None = None,
    ) -> Overlaps: ...
    def contained_in_many(
        self,
        documents: _Documents,
        *,
        min_share: float | None = None,
        min_shared: int | None = None,
        limit: int | None = None,
        max_document_frequency: int | None = None,
        filter: Filter | None = None,
        threads: int | None = None,
    ) -> list[Overlaps]: ...
    def contents_of(
        self,
        document: _Document,
        /,
        *,
        min_share: float | None = None,
        min_shared: int | None = None,
        limit: int | None = None,
        max_document_frequency: int | None = None,
        filter: Filter | None = None,
    ) -> Overlaps: ...
    def contents_of_many(
        self,
        documents: _Documents,
        *,
        min_share: float | None = None,
        min_shared: int | None = None,
        limit: int | None = None,
        max_document_frequency: int | None = None,
        filter: Filter | None = None,
        threads: int | None = None,
    ) -> list[Overlaps]: ...
    def overlaps(
        self,
        document: _Document,
        /,
        *,
        min_share: float | None = None,
        min_shared: int | None = None,
        limit: int | None = None,
        max_document_frequency: int | None = None,
        filter: Filter | None = None,
    ) -> Overlaps: ...
    def overlaps_many(
        self,
        documents: _Documents,
        *,
        min_share: float | None = None,
        min_shared: int | None = None,
        limit: int | None = None,
        max_document_frequency: int | None = None,
        filter: Filter | None = None,
        threads: int | None = None,
    ) -> list[Overlaps]: ...
    def frequent_passages(
        self,
        documents: _Documents,
        max_document_frequency: int,
        *,
        filter: Filter | None = None,
        threads: int | None = None,
    ) -> list[list[FrequentPassage]]: ...
    def candidates(self, document: _Document, *, filter: Filter | None = None) -> list[int]: ...
    def get_id(self, id: int) -> Record | None: ...

class _Writes:
    """The methods that stores and transactions share."""

    def insert(
        self, key: _Key | None, document: _Document, *, payload: bytes = ..., stamp: int = 0
    ) -> int: ...
    def insert_if_new(
        self, key: _Key | None, document: _Document, *, payload: bytes = ..., stamp: int = 0
    ) -> Novelty: ...
    def upsert(
        self, key: _Key | None, document: _Document, *, payload: bytes = ..., stamp: int = 0
    ) -> Upserted: ...
    def remove(self, key: _Key) -> int: ...
    def discard(self, key: _Key) -> bool: ...
    def touch(self, key: _Key, stamp: int) -> int: ...
    def set_position(self, name: str, position: bytes | None) -> None: ...

@final
class Store(_Reads, _Writes):
    """A store for near-duplicate search in one file.

    Any thread may use it. Other processes can read the file meanwhile, and with `shared_writers` they
    take turns to write it. A handle that was opened before a fork raises `ForkedError` in the child.
    """

    @classmethod
    def create(
        cls,
        path: _Path,
        schema: Schema,
        *,
        cache_bytes: int | None = None,
        probe_budget: int | None = None,
        group_wait: float | None = None,
        shared_writers: bool = False,
        without_lock: bool = False,
    ) -> Store: ...
    @classmethod
    def in_memory(
        cls, schema: Schema, *, cache_bytes: int | None = None, probe_budget: int | None = None
    ) -> Store: ...
    @classmethod
    def open(
        cls,
        path: _Path,
        *,
        read_only: bool = False,
        wait: float = 10.0,
        shared_writers: bool | None = None,
        cache_bytes: int | None = None,
        probe_budget: int | None = None,
        group_wait: float | None = None,
        without_lock: bool = False,
    ) -> Store: ...
    @classmethod
    def open_or_create(
        cls,
        path: _Path,
        schema: Schema,
        *,
        wait: float = 10.0,
        shared_writers: bool | None = None,
        cache_bytes: int | None = None,
        probe_budget: int | None = None,
        group_wait: float | None = None,
        without_lock: bool = False,
    ) -> Store: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    def queue_insert_if_new(
        self, key: _Key | None, document: _Document, *, payload: bytes = ..., stamp: int = 0
    ) -> Ticket[Novelty]: ...
    def insert_if_new_async(
        self, key: _Key | None, document: _Document, *, payload: bytes | None = None, stamp: int = 0
    ) -> Coroutine[Any, Any, Novelty]: ...
    def queue_set_position(self, name: str, position: bytes | None) -> Ticket[None]: ...
    def set_position_async(self, name: str, position: bytes | None) -> Coroutine[Any, Any, None]: ...
    @overload
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        if_new: Literal[False] = False,
        threads: int | None = None,
        commit_every: int | None = None,
        position: tuple[str, bytes] | None = None,
    ) -> list[int]: ...
    @overload
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        if_new: Literal[True],
        threads: int | None = None,
        commit_every: int | None = None,
        position: tuple[str, bytes] | None = None,
    ) -> list[Novelty]: ...
    @overload
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        if_new: bool,
        threads: int | None = None,
        commit_every: int | None = None,
        position: tuple[str, bytes] | None = None,
    ) -> list[int] | list[Novelty]: ...
    def transaction(self) -> Transaction: ...
    def snapshot(self) -> Snapshot: ...
    def deduplicator(self) -> Deduplicator: ...
    def evict(
        self,
        *,
        older_than: int | None = None,
        keep_newest: int | None = None,
        matching: Callable[[StoredDocument], bool] | None = None,
        dry_run: bool = False,
        progress: _Callback | None = None,
    ) -> EvictReport: ...
    def import_(
        self,
        path: _Path,
        *,
        existing_keys: Literal["refuse", "skip", "replace", "replace-if-newer"] = "refuse",
        if_new: bool = False,
        progress: _Callback | None = None,
    ) -> ImportReport: ...
    def close(self) -> None: ...
    def __enter__(self) -> Store: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Transaction(_Writes):
    """Changes that become visible and durable together. A `with` block commits at its end, which raises
    `ClosedError` if the store was closed meanwhile, and rolls back after an exception.
    """

    @overload
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        if_new: Literal[False] = False,
        threads: int | None = None,
    ) -> list[int]: ...
    @overload
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        if_new: Literal[True],
        threads: int | None = None,
    ) -> list[Novelty]: ...
    @overload
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        if_new: bool,
        threads: int | None = None,
    ) -> list[int] | list[Novelty]: ...
    def position(self, name: str) -> bytes | None: ...
    def query(
        self,
        document: _Document,
        /,
        *,
        threshold: float | None = None,
        max_distance: int | None = None,
        by: _By | None = None,
        limit: int | None = None,
        payloads: bool = False,
        accept_lower_recall: bool = False,
        margin: float | None = None,
        filter: Filter | None = None,
    ) -> Matches: ...
    def cluster_of(self, key: _Key) -> int | None: ...
    def get(self, key: _Key) -> Record | None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __enter__(self) -> Transaction: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Ticket(Generic[_Answer]):
    """The answer to a queued change: a `Novelty`, or `None` for a position."""

    def on_ready(self, callable: Callable[[], object]) -> bool: ...
    def wait(self) -> _Answer: ...
    def result(self) -> _Answer: ...

@final
class BulkBuild:
    """Builds a store from many documents, offline. The file does not exist before `finish`."""

    def __new__(
        cls,
        path: _Path,
        schema: Schema,
        *,
        memory_bytes: int | None = None,
        temp_dir: _Path | None = None,
        threads: int | None = None,
        duplicate_keys: Literal["refuse", "keep-first", "keep-last"] = "refuse",
    ) -> BulkBuild: ...
    def insert_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        payloads: Iterable[bytes] | None = None,
        stamps: Iterable[int] | None = None,
        threads: int | None = None,
    ) -> None: ...
    def finish(self, *, progress: _Callback | None = None) -> BulkReport: ...
    def __len__(self) -> int: ...

@final
class Deduplicator:
    """Decides which documents of a stream to keep: those that are near no document kept before."""

    def __new__(
        cls,
        schema: Schema,
        folder: _Path,
        *,
        exact: bool = False,
        cache_bytes: int | None = None,
        memory_bytes: int | None = None,
        budget: int | None = None,
    ) -> Deduplicator: ...
    @property
    def budget_exceeded(self) -> int: ...
    def decide_many(
        self,
        documents: _Documents,
        keys: _Keys | None = None,
        *,
        stamps: Iterable[int] | None = None,
        threads: int | None = None,
    ) -> list[Match | None]: ...
    def decide_with_evidence(
        self, documents: _Documents, *, stamps: Iterable[int], threads: int | None = None
    ) -> list[_FoundFields | None]: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Deduplicator: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class RepeatedParts:
    """Removes paragraphs or lines that have already appeared, in an earlier text or earlier in the same
    one, and keeps the first of equal parts. A paragraph ends at a blank line.

    Two parts are equal if their words (or the other units of `text`) are equal; case, spaces and
    punctuation do not matter. A part without words is kept. Each different part takes up to 31 bytes of
    `memory_bytes` (default: 1 GiB). If there are more parts than fit, `trim` raises
    `InvalidParameterError`.

    >>> seen = RepeatedParts("line")
    >>> seen.trim("Home | About\\nNews\\n").text, seen.trim("HOME, ABOUT\\nSport\\n").text
    ('Home | About\\nNews\\n', 'Sport\\n')
    """

    def __new__(
        cls,
        part: Literal["paragraph", "line"],
        text: Text | None = None,
        *,
        memory_bytes: int | None = None,
    ) -> RepeatedParts: ...
    def trim(self, text: str) -> Trimmed: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...

@final
class StoreComparison:
    def __new__(
        cls, snapshot: Snapshot, folder: _Path | None = None, *, memory_bytes: int | None = None
    ) -> StoreComparison: ...
    def add_texts(self, texts: _Documents, keys: _Keys, *, threads: int | None = None) -> int: ...
    def recall(self, lost: float, times: float) -> float | None: ...
    def near(
        self, documents: _Documents, *, threads: int | None = None
    ) -> tuple[list[_FoundFields | None], list[_ComparedFields]]: ...
    def holders(
        self, documents: _Documents, lost: float, *, threads: int | None = None
    ) -> tuple[list[_ComparedFields | None], list[_ComparedFields]]: ...

@final
class TemporaryCorpus:
    def __new__(
        cls, path: _Path, schema: Schema, *, exact: bool = False, memory_bytes: int | None = None
    ) -> TemporaryCorpus: ...
    def insert_many(
        self, documents: _Documents, keys: _Keys | None = None, *, threads: int | None = None
    ) -> None: ...
    def finish(self, *, progress: _Callback | None = None) -> None: ...
    def snapshot(self) -> Snapshot: ...
    def duplicates(
        self,
        policy: str,
        keep: Literal["first", "last"] | list[float],
        *,
        lost: float | None = None,
        rejected: bool = False,
        threads: int | None = None,
        max_bucket: int | None = None,
        progress: _Callback | None = None,
    ) -> tuple[
        list[tuple[int, int, float | None, bool, int | None, float | None, float | None, _DropRule]],
        list[_ComparedFields],
    ]: ...
    def close(self) -> None: ...

@final
class ArrowBatches(Iterator[tuple[Any, Any | None]]):
    def __new__(cls, table: object, text: str, key: str | None) -> ArrowBatches: ...
    def __next__(self) -> tuple[Any, Any | None]: ...

@final
class CorpusFiles(Iterator[tuple[list[str | None], list[str | None]]]):
    def __new__(
        cls,
        paths: Sequence[_Path],
        text: str,
        key: str | None,
        *,
        table: str | None = None,
        skip_nulls: bool = False,
        html: bool = False,
    ) -> CorpusFiles: ...
    def __next__(self) -> tuple[list[str | None], list[str | None]]: ...

def number_key(kind: str, number: float) -> str | None: ...
def several(parameter: str, values: object) -> Iterator[Any]: ...
def arrow_list(column: _ArrowStream | _ArrowArray) -> list[Any]: ...
def spans_of_texts(a: str, b: str, text: Text) -> SharedSpans: ...
def explanation_of_texts(a: str, b: str, schema: Schema) -> Explanation: ...
def passage_of_texts(a: str, b: str, text: Text) -> SharedPassage | None: ...
@final
class WholeTexts:
    """Short texts that are to be found as wholes in others: all their words (or the other units of
    `text`), one after the other. Queries for shared passages miss texts that are shorter than a passage.

    `find` returns the number of each text that is in another one, and the position where it is first.

    >>> from resemblance.exact import WholeTexts
    >>> questions = WholeTexts(["Who?", "Which river flows through Rome?"])
    >>> questions.find("He asked: which river flows through ROME?")
    [(1, (10, 40))]
    """

    def __new__(cls, texts: Iterable[str], text: Text | None = None) -> WholeTexts: ...
    def find(self, text: str) -> list[tuple[int, tuple[int, int]]]: ...

def similarity_of_sets(
    measure: str, a: Iterable[str | bytes], b: Iterable[str | bytes]
) -> float: ...
def similarity_of_weights(
    measure: str,
    a: dict[str, float] | dict[bytes, float],
    b: dict[str, float] | dict[bytes, float],
) -> float: ...
def parse_stamp(text: str) -> int: ...
def version_details() -> dict[str, str]:
    """Returns what identifies this build in a report of a bug, as `resemblance --version --verbose` prints it."""

def check(path: _Path, *, progress: _Callback | None = None) -> CheckReport: ...
def compact(path: _Path, *, progress: _Callback | None = None) -> CompactReport: ...
def merge(
    target: _Path,
    shards: Iterable[_Path],
    *,
    duplicate_keys: Literal["refuse", "keep-first", "keep-last"] = "refuse",
    memory_bytes: int | None = None,
    temp_dir: _Path | None = None,
    threads: int | None = None,
    progress: _Callback | None = None,
) -> BulkReport: ...
def reband(
    path: _Path,
    *,
    threshold: float | None = None,
    recall: float | None = None,
    bands: int | None = None,
    rows: int | None = None,
    max_distance: int | None = None,
    expected_documents: int | None = None,
    exact: bool = False,
    exact_bits: int | None = None,
    sets_from: Snapshot | None = None,
    progress: _Callback | None = None,
) -> RebandReport: ...
def repair(path: _Path, target: _Path, *, progress: _Callback | None = None) -> RepairReport: ...
def banding_choice(
    values: int, threshold: float, recall: float, documents: int, background: float
) -> BandingChoice: ...
def table_choice(max_distance: int, documents: int, *, bits: int = 64) -> TableChoice: ...
def evaluate_sample(
    documents: _Documents,
    schema: Schema,
    folder: _Path,
    *,
    keys: _Keys | None = None,
    floor: float = 0.1,
    max_missed: int = 100,
    progress: _Callback | None = None,
) -> Evaluation: ...

@final
class PairRule:
    """Decides which documents are compared and which of them are pairs, by the bounds of a join, for an
    engine that finds the candidates. Input and output are Arrow columns.
    """

    def __new__(
        cls,
        schema: Schema,
        *,
        threshold: float | None = None,
        max_distance: int | None = None,
        by: _By | None = None,
        accept_lower_recall: bool = False,
    ) -> PairRule: ...
    @property
    def lanes(self) -> tuple[int, int]: ...
    def sketch_batch(
        self, documents: _ArrowArray, *, exact: bool, threads: int | None = None
    ) -> list[_ArrowArray]: ...
    def compare_batch(
        self, signatures: _ArrowArray, a: _ArrowArray, b: _ArrowArray, shares_band: _ArrowArray
    ) -> list[_ArrowArray]: ...
    def exact_batch(
        self,
        texts: _ArrowArray,
        a: _ArrowArray,
        b: _ArrowArray,
        shares_band: _ArrowArray,
        *,
        threads: int | None = None,
    ) -> list[_ArrowArray]: ...

@final
class BucketPairs(Iterator[list[_ArrowArray]]):
    """The pairs to compare, from sorted postings."""

    def __new__(cls, *, max_bucket: int | None = None) -> BucketPairs: ...
    def push(self, lane: _ArrowArray, code: _ArrowArray, document: _ArrowArray) -> None: ...
    def __iter__(self) -> BucketPairs: ...
    def __next__(self) -> list[_ArrowArray]: ...

@final
class Components:
    """Connected components of links, in memory."""

    def __new__(cls) -> Components: ...
    def push(self, a: _ArrowArray, b: _ArrowArray) -> None: ...
    def finish(self) -> list[_ArrowArray]: ...

@final
class FirstKept:
    """Finds the documents to drop from whole components. A document is dropped if it is near an earlier
    kept one.
    """

    def __new__(cls) -> FirstKept: ...
    def push(self, a: _ArrowArray, b: _ArrowArray) -> _ArrowArray: ...

def shard_numbers(keys: _ArrowArray, shards: int) -> _ArrowArray: ...
def table_lines(
    a: _ArrowArray,
    b: _ArrowArray,
    similarity: _ArrowArray | None = None,
    distance: _ArrowArray | None = None,
) -> _ArrowArray: ...
