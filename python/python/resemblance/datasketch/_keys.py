"""Keys of any kind as bytes, equal for equal keys, as in a dictionary."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Hashable, Iterable
from fractions import Fraction
from numbers import Complex, Integral
from typing import Any


def key_bytes(key: Hashable) -> bytes:
    """The bytes of a key in the store. They begin with a letter for its kind. Equal keys have equal
    bytes: `1`, `1.0` and `True`, and tuples of the same values. Text and bytes are unchanged.
    """
    made = _plain_bytes(key)
    if made is not None:
        return made
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol=4)
    # Without it, the bytes of equal objects differ by which of their parts are one object.
    pickler.fast = True
    pickler.dump(key)
    return b"p" + buffer.getvalue()


def key_object(key: bytes) -> Hashable:
    """A key that equals the one from which `key_bytes` made these bytes."""
    kind, rest = key[:1], key[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    if kind == b"b":
        return rest
    if kind == b"i":
        return int(rest)
    if kind == b"r":
        exact = Fraction(rest.decode())
        return float(exact) if float(exact) == exact else exact
    if kind == b"t":
        return tuple(_split(rest))
    if kind == b"z":
        return frozenset(_split(rest))
    unpickled: Hashable = _Unpickler(io.BytesIO(rest)).load()
    return unpickled


def _plain_bytes(key: Any) -> bytes | None:
    """The bytes of text, bytes, numbers, tuples and frozen sets, `None` for any other key."""
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    if type(key) is int:
        return b"i%d" % key
    if isinstance(key, tuple):
        return b"t" + _joined(map(key_bytes, key))
    if isinstance(key, frozenset):
        return b"z" + _joined(sorted(map(key_bytes, key)))
    if isinstance(key, Complex) or hasattr(key, "as_integer_ratio"):
        return _number_bytes(key)
    return None


def _number_bytes(number: Any) -> bytes | None:
    """The bytes of a whole number or a fraction, whatever its type; `None` if it is neither."""
    if getattr(number, "imag", 0) != 0:
        return None
    real = getattr(number, "real", number)
    if isinstance(real, Integral):
        return b"i%d" % int(real)
    try:
        exact = Fraction(*real.as_integer_ratio()) if math.isfinite(real) else None
    except (AttributeError, TypeError, ValueError):
        exact = None
    if exact is None:
        return None
    return b"i%d" % exact.numerator if exact.denominator == 1 else b"r%d/%d" % exact.as_integer_ratio()


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(b"%d:" % len(part) + part for part in parts)


def _split(rest: bytes) -> Iterable[Hashable]:
    while rest:
        length, _, rest = rest.partition(b":")
        yield key_object(rest[: int(length)])
        rest = rest[int(length) :]


class _Pickler(pickle.Pickler):
    """Writes what `_plain_bytes` knows as it does, wherever it is in an object."""

    def persistent_id(self, obj: Any) -> bytes | None:
        is_part = isinstance(obj, (tuple, frozenset, int, float, complex)) and obj != ()
        return _plain_bytes(obj) if is_part else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        return key_object(pid)
