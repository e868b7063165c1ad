"""Near-duplicate search in one durable file.

*Have I already got something like this?* A store answers that question for texts, sets of features and
signatures of other programs. It is one file, in which documents can be added and removed at any time:

    >>> import resemblance as rs
    >>> schema = rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash(128, threshold=0.7))
    >>> with rs.Store.create("seen.rsm", schema) as store:
    ...     if store.insert_if_new("page/1", text):
    ...         print("new")
    ...     for found in store.query(text, limit=10):
    ...         print(found.key, found.similarity)

`Schema` defines how documents are compared. `Store` is the file, `Snapshot` is its state at one moment,
and `Transaction` is a group of changes. `dedup`, `pairs` and `clusters` work on whole corpora and need
no store; `bulk_build` builds a store from many documents, offline. `tune` and `evaluate` help you to
choose a schema, `explain` shows why two texts are similar, and `RepeatedParts` drops repeated
paragraphs or lines. `resemblance.datasketch` has the classes of the package of that name over a store.
"""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from . import errors
from ._native import (
    FORMAT_VERSION,
    BulkBuild,
    Cluster,
    ClusterChange,
    ClusterChanges,
    Clusters,
    Deduplicator,
    Filter,
    Match,
    Matches,
    Novelty,
    Pair,
    Pairs,
    Record,
    Records,
    RepeatedParts,
    Schema,
    Signature,
    Signatures,
    Snapshot,
    Store,
    Ticket,
    Transaction,
    Upserted,
    __version__,
    check,
    compact,
    merge,
    parse_stamp,
    reband,
    repair,
    version_details,
)
from .corpus import (
    Dedup,
    Duplicate,
    Rejected,
    Review,
    Evaluation,
    bulk_build,
    clusters,
    dedup,
    evaluate,
    pairs,
    read_files,
    tune,
)
from .errors import *  # noqa: F403
from .errors import __all__ as _error_names
from .explanation import Explanation, explain
from .reports import (
    FrequentPassage,
    Overlap,
    Overlaps,
    PlacedPassage,
    Progress,
    Trimmed,
    progress_bar,
)
from .schema import Containment, MinHash, SimHash, Text, Vector

# Not `Clusters` and `Matches`: polars reads sequences one by one, and these through Arrow's interface.
for _class in (Cluster, Overlaps, Signatures):
    _Sequence.register(_class)

# Registration as a sequence gives no methods, and the others are sequences in all but that.
_SEQUENCES: tuple[_Any, ...] = (Cluster, Clusters, Matches, Overlaps, Signatures)
for _class in _SEQUENCES:
    _class.index = _Sequence.index
    _class.count = _Sequence.count

__all__ = [
    "FORMAT_VERSION",
    "BulkBuild",
    "Cluster",
    "ClusterChange",
    "ClusterChanges",
    "Clusters",
    "Containment",
    "Dedup",
    "Deduplicator",
    "Duplicate",
    "Rejected",
    "Review",
    "Evaluation",
    "Explanation",
    "Filter",
    "FrequentPassage",
    "Match",
    "Matches",
    "MinHash",
    "Novelty",
    "Overlap",
    "Overlaps",
    "Pair",
    "Pairs",
    "PlacedPassage",
    "Progress",
    "Record",
    "Records",
    "RepeatedParts",
    "Schema",
    "Signature",
    "Signatures",
    "SimHash",
    "Snapshot",
    "Store",
    "Text",
    "Ticket",
    "Transaction",
    "Trimmed",
    "Upserted",
    "Vector",
    "__version__",
    "bulk_build",
    "check",
    "clusters",
    "compact",
    "dedup",
    "errors",
    "evaluate",
    "explain",
    "merge",
    "pairs",
    "parse_stamp",
    "progress_bar",
    "read_files",
    "reband",
    "repair",
    "tune",
    "version_details",
    *_error_names,
]
