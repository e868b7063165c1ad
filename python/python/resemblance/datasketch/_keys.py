"""Keys of many kinds as bytes, equal for equal keys, as in a dictionary."""

from __future__ import annotations

import io
import math
import os
import pickle
from collections.abc import Hashable, Iterable
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from fractions import Fraction
from numbers import Complex, Integral
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

import numpy as np


def key_bytes(key: Hashable) -> bytes:
    """The bytes of a key in the store. They begin with a letter for its kind. Equal keys have equal
    bytes: `1`, `1.0` and `True`, and tuples of the same values. Text and bytes are unchanged.

    Raises:
        TypeError: The key cannot be hashed, or is of a class that decides by itself what it equals.
    """
    hash(key)
    return _any_bytes(key)


def _any_bytes(key: Any) -> bytes:
    made = _plain_bytes(key)
    return _pickled(_canonical(key)) if made is None else made


def _canonical(key: Any) -> Any:
    """The one of all objects that equal a key whose bytes are kept."""
    if key is None or isinstance(key, (Enum, type)):
        return key
    if (isinstance(key, Complex) or hasattr(key, "as_integer_ratio")) and not isinstance(key, np.timedelta64):
        # Infinite, not a number, or complex.
        return complex(key) if getattr(key, "imag", 0) != 0 else float(getattr(key, "real", key))
    if isinstance(key, UUID):
        return UUID(int=key.int)
    if isinstance(key, range):
        step = key.step if len(key) > 1 else 1
        return range(key[0], key[0] + len(key) * step, step) if key else range(0)
    if isinstance(key, type(PurePath())):
        return Path(os.path.normcase(key))
    # Those of pandas may have nanoseconds.
    if not getattr(key, "nanosecond", 0) and not getattr(key, "nanoseconds", 0):
        if isinstance(key, datetime):
            zone = None if key.utcoffset() is None else timezone.utc
            moment = key if zone is None else key.astimezone(zone)
            return datetime(*moment.timetuple()[:6], moment.microsecond, zone)
        if isinstance(key, timedelta):
            return timedelta(key.days, key.seconds, key.microseconds)
        if type(key) is date:
            return key
    found = type(key).__name__
    raise TypeError(
        f"key: found {found}, expected text, bytes, a number, a date, a datetime, a UUID, a path, an Enum, None, or a "
        "tuple or frozenset of these: what other objects equal is not known; astuple() makes a tuple of a dataclass"
    )


def _pickled(key: Any) -> bytes:
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
    if isinstance(key, memoryview):
        return b"b" + bytes(key)
    if isinstance(key, np.bool_):
        return b"i%d" % bool(key)
    if isinstance(key, tuple):
        return b"t" + _joined(map(_any_bytes, key))
    if isinstance(key, frozenset):
        return b"z" + _joined(sorted(map(_any_bytes, key)))
    is_number = isinstance(key, Complex) or hasattr(key, "as_integer_ratio")
    return _number_bytes(key) if is_number and not isinstance(key, np.timedelta64) else None


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
        is_part = type(obj) in (tuple, frozenset, int, bool, float, complex) and obj != ()
        try:
            return _plain_bytes(obj) if is_part else None
        except TypeError:
            # The value of an Enum may be any object.
            return None

    def reducer_override(self, obj: Any) -> Any:
        # The same in every release of Python.
        if isinstance(obj, Enum):
            return type(obj), (obj.value,)
        return (type(obj), obj.parts) if isinstance(obj, PurePath) else NotImplemented


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        return key_object(pid)
