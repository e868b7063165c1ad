"""The classes of the package `datasketch`, over a store on disk.

A program that changes its import from `datasketch` to `resemblance.datasketch` works as before, except
that a large index is in a temporary file instead of memory. With `path=...` the index is in your file:
each change is durable when the call returns, and the index survives a restart:

    >>> from resemblance.datasketch import MinHash, MinHashLSH
    >>> lsh = MinHashLSH(threshold=0.8, num_perm=128, path="seen.rsm")
    >>> lsh.insert("page/1", minhash)
    >>> lsh.query(minhash)
    ['page/1']

MinHash values are the same as those of datasketch, bit for bit, so you can use stored sketches.
`docs/from-datasketch.md` maps every verb and lists the differences.
"""

from .forest import MinHashLSHForest
from .hashes import sha1_hash32
from .lsh import MinHashLSH, MinHashLSHDeletionSession, MinHashLSHInsertionSession
from .minhash import MinHash
from .weighted import WeightedMinHash, WeightedMinHashGenerator

__all__ = [
    "MinHash",
    "MinHashLSH",
    "MinHashLSHDeletionSession",
    "MinHashLSHForest",
    "MinHashLSHInsertionSession",
    "WeightedMinHash",
    "WeightedMinHashGenerator",
    "sha1_hash32",
]
