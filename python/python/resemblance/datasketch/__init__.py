"""The classes of the package `datasketch`, over a store on disk.

A program that changes its import from `datasketch` to `resemblance.datasketch` works as before, with the
index in a temporary file in place of memory once it is large; with `path=...` it is in a file of yours, each change is
durable when the call returns, and it is there after a restart:

    >>> from resemblance.datasketch import MinHash, MinHashLSH
    >>> lsh = MinHashLSH(threshold=0.8, num_perm=128, path="seen.rsm")
    >>> lsh.insert("page/1", minhash)
    >>> lsh.query(minhash)
    ['page/1']

MinHash values are those of datasketch, bit for bit, so that sketches that were kept can be used.
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
