"""The results of long calls, and their progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Schema


@dataclass(frozen=True)
class Progress:
    """The progress of a call: `done` of `total` units of a phase. `total` is `None` where it is not
    known.
    """

    phase: str
    done: int
    total: int | None
    unit: str


@contextmanager
def progress_bar(**options: Any) -> Iterator[Callable[[Progress], None]]:
    """A progress callback that draws a bar with `tqdm` if that is installed, and otherwise nothing.

    >>> with progress_bar() as progress:
    ...     store.clusters(progress=progress)
    """
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        yield lambda _progress: None
        return
    # The bar of the phase reported last.
    bars: dict[str, Any] = {}

    def close() -> None:
        for bar in bars.values():
            bar.close()
        bars.clear()

    def show(progress: Progress) -> None:
        if progress.phase not in bars:
            close()
            bars[progress.phase] = tqdm(desc=progress.phase, unit=progress.unit, **options)
        bar = bars[progress.phase]
        bar.total = progress.total
        bar.n = progress.done
        bar.refresh()

    try:
        yield show
    finally:
        close()


@dataclass(frozen=True)
class PlacedPassage:
    """A passage that a query and a document share: the shingles from `start` to before `end` in each, from 0.

    Shingles `a` to before `b` of k words cover the words `a` to before `b + k - 1`.
    """

    query: tuple[int, int]
    document: tuple[int, int]


@dataclass(frozen=True)
class Overlap:
    """A document that shares passages with a query, according to the kept hashes of both.

    `query_share` and `document_share` are estimates of the shares of the query's and of the document's
    shingles that the other has. `longest_run` is about the length of the longest passage, in shingles of
    the query; `None` if the query comes from a store without positions. `query_share_variance` is `None` for
    windows. `passages` are the positions of the shared passages if the schema keeps positions, else `None`.
    """

    id: int
    key: str | None
    stamp: int
    query_share: float
    document_share: float
    shared_hashes: int
    document_hashes: int
    longest_run: int | None
    query_share_variance: float | None
    passages: list[PlacedPassage] | None


@dataclass(frozen=True)
class Overlaps:
    """Documents that share passages with a query, those that share most first.

    Of the query's `query_hashes`, `capped_hashes` were ignored because more than
    `max_document_frequency` documents have them. A passage with only such hashes is not found.
    """

    overlaps: list[Overlap]
    query_hashes: int
    capped_hashes: int

    def __len__(self) -> int:
        return len(self.overlaps)

    def __iter__(self) -> Iterator[Overlap]:
        return iter(self.overlaps)

    def __getitem__(self, index: Any) -> Any:
        return self.overlaps[index]


@dataclass(frozen=True)
class FrequentPassage:
    """A passage of a text that many documents have, such as a menu or a licence: `text[start:end]`.

    It has `shingles` consecutive shingles, the rarest kept one of which is in `documents` documents.
    The passage begins and ends with kept shingles; the common text may be longer by up to a window
    minus one at each end.
    """

    start: int
    end: int
    shingles: int
    documents: int


@dataclass(frozen=True)
class Problem:
    """A problem in a store: the number of the violated invariant, the place, and a description."""

    invariant: int
    place: str
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`. True if there are no problems.

    `while_written` is true if another process had the store open for writing: then its last commit was checked, and
    pages that no table refers to were not.
    """

    documents: int
    postings: int
    problems: list[Problem]
    truncated: bool
    while_written: bool

    def __bool__(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class CompactReport:
    """The result of `compact`."""

    size_before_bytes: int
    size_after_bytes: int
    length_before_bytes: int
    length_after_bytes: int


@dataclass(frozen=True)
class RebandReport:
    """The result of `reband`. `is_rewritten` is false if the bands were as wanted already."""

    schema: Schema
    documents: int
    is_rewritten: bool
    size_before_bytes: int
    size_after_bytes: int


@dataclass(frozen=True)
class RepairReport:
    """The result of `repair`."""

    documents: int
    documents_before: int | None
    documents_lost: int
    is_complete: bool
    damage: list[Problem]


@dataclass(frozen=True)
class BackupReport:
    """The result of `backup`."""

    documents: int
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class ExportReport:
    """The result of `export`."""

    documents: int
    size_bytes: int


@dataclass(frozen=True)
class ImportReport:
    """The result of `import_`: the documents of the file, counted by result."""

    read: int
    inserted: int
    replaced: int
    skipped: int
    near_duplicates: int


@dataclass(frozen=True)
class EvictReport:
    """The result of `evict`. `spared` were selected, and then touched, replaced or removed by others, or
    `matching` did not select them again.
    """

    examined: int
    evicted: int
    spared: int


@dataclass(frozen=True)
class BulkReport:
    """The result of a bulk build. `duplicates` is the number of documents that were left out because of
    their keys.
    """

    documents: int
    duplicates: int
    spilled_bytes: int


@dataclass(frozen=True)
class Stats:
    """Counts of the contents of a store."""

    documents: int
    next_id: int
    memtable_documents: int
    dead_rows: int
    dead_bytes: int
    runs: int
    file_bytes: int
    allocated_bytes: int
    compact_gain_bytes: int
    compact_length_gain_bytes: int
    bytes_per_document: float


@dataclass(frozen=True)
class LeftOut:
    """The comparisons that a join left out because `max_bucket` cut buckets short."""

    buckets: int
    documents: int
    pairs: int


@dataclass(frozen=True)
class StoredDocument:
    """A stored document, as `evict(matching=...)` and `Filter(matching=...)` pass it to their callables."""

    id: int
    key: str | None
    stamp: int
    payload: bytes


@dataclass(frozen=True)
class Trimmed:
    """A text without the paragraphs or lines that have already appeared. `dropped` lists their indices.
    `is_emptied` is true if the text had parts with words and none remains.
    """

    text: str
    dropped: list[int]
    is_emptied: bool


@dataclass(frozen=True)
class BandingChoice:
    """The cost and the results of one number of MinHash values: see `tune`.

    `recall` is the probability that a pair at the threshold is found, `deviation` the standard
    deviation of an estimate there, `candidates` the documents that a query compares, by chance alone.
    """

    values: int
    bands: int
    rows: int
    recall: float
    deviation: float
    candidates: float
    posting_bytes: float
    document_bytes: float


@dataclass(frozen=True)
class TableChoice:
    """The cost of the SimHash tables for a number of documents."""

    documents: int
    tables: int
    posting_bytes: float
    document_bytes: float


@dataclass(frozen=True)
class Evaluation:
    """How much of a sample a schema finds, compared with all exact similarities: see `evaluate`.

    `near_pairs` have an exact similarity of the threshold or more, and `near_found` of these are
    returned; `recall` is their share, and `expected_recall` its value in theory. `precision` is the share
    of near pairs among all that are returned. `error_mean` and `error_deviation` are those of estimates.
    `missed` has the most similar pairs that were not returned: two keys, exact and estimated similarity.
    `steps` are the points of an S-curve, for each tenth of the exact similarity: from where on, the number of
    pairs, of candidates among them, what theory expects of these, and of pairs returned. `families` has, where
    there are both, the number of pairs returned, of those that are near, and of near pairs that theory
    expects to be candidates, by `"minhash"`, `"simhash"`, `"both"` and `"any"`. `distances` counts, for
    SimHash, pairs by distance: those there are and those that were returned.
    """

    documents: int
    near_pairs: int = 0
    near_found: int = 0
    recall: float | None = None
    expected_recall: float | None = None
    precision: float | None = None
    error_mean: float | None = None
    error_deviation: float | None = None
    candidates: int = 0
    missed: list[tuple[str, str, float, float]] = field(default_factory=list)
    steps: list[tuple[float, int, int, float, int]] = field(default_factory=list)
    distances: list[tuple[int, int]] = field(default_factory=list)
    families: dict[str, tuple[int, int, float]] = field(default_factory=dict)
