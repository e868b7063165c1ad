"""Hash functions of features."""

from __future__ import annotations

import hashlib


def sha1_hash32(data: bytes) -> int:
    """The first 32 bits of SHA-1, as a little-endian number."""
    return int.from_bytes(hashlib.sha1(data).digest()[:4], "little")
