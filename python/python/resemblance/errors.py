"""The exceptions of this package, one for each kind of error of the library.

All are below `ResemblanceError`, and below `ValueError`, `KeyError`, `FileExistsError`,
`FileNotFoundError` or `OSError` where one of these fits. Bounds, files and keys that an exception
knows are its attributes.
"""

from __future__ import annotations

__all__ = [
    "AlreadyExistsError",
    "BusyError",
    "ClosedError",
    "CorruptError",
    "DamagedStreamError",
    "ForkedError",
    "ImportStoppedError",
    "InternalError",
    "InvalidParameterError",
    "KeyExistsError",
    "LockedError",
    "LocksUnsupportedError",
    "MissingFeatureError",
    "NeedsRecoveryError",
    "NewerFormatError",
    "NotAStoreError",
    "NotFoundError",
    "NotUtf8Error",
    "OtherRecipeError",
    "QueueFullError",
    "ReadOnlyError",
    "RepeatedKeyError",
    "ResemblanceError",
    "SelfTestError",
    "SignatureMismatchError",
    "StoppedError",
    "StorageError",
    "StoreIOError",
    "UnknownFeaturesError",
    "UnknownLayoutError",
    "UntriedEngineError",
]


class ResemblanceError(Exception):
    """The base of all exceptions of this package."""

    def __str__(self) -> str:
        # KeyError would show a message as a key, and OSError one with a number.
        return str(self.args[0]) if self.args else ""


class InternalError(ResemblanceError):
    """A fault of the library. Nothing was committed; please report it."""


class InvalidParameterError(ResemblanceError, ValueError):
    """A parameter is out of its range."""

    parameter: str
    found: str
    expected: str


class KeyExistsError(ResemblanceError, KeyError):
    """`insert` met a key that the store holds. `upsert` replaces the document."""

    key: bytes
    id: int


class RepeatedKeyError(ResemblanceError, KeyError):
    """An offline build was given a key twice."""

    key: bytes
    first: int
    second: int


class SignatureMismatchError(ResemblanceError, ValueError):
    """A signature does not fit the schema, or two signatures cannot be compared."""



class AlreadyExistsError(ResemblanceError, FileExistsError):
    """`create` met a file. It was not touched."""


class NotFoundError(ResemblanceError, FileNotFoundError):
    """`open` met no file. It never creates one."""


class NotAStoreError(ResemblanceError, ValueError):
    """The file is something else. It was not touched."""

    filename: str


class NewerFormatError(ResemblanceError):
    """A newer release wrote the file."""


class UnknownFeaturesError(ResemblanceError):
    """The file uses features that this release does not know."""


class UnknownLayoutError(ResemblanceError):
    """The pages of the file are laid out as this release does not know."""


class UntriedEngineError(ResemblanceError):
    """This build has a storage engine that it was not tried with."""


class CorruptError(ResemblanceError):
    """The file is damaged. `check` reports where, and `repair` keeps what can be read."""


class SelfTestError(ResemblanceError):
    """This build hashes differently from the one that made the store."""


class DamagedStreamError(ResemblanceError, ValueError):
    """An exported file is damaged, cut short, or something else."""

    documents: int


class OtherRecipeError(ResemblanceError, ValueError):
    """The documents of an exported file were made by another recipe."""


class ImportStoppedError(ResemblanceError):
    """An import ended early. Committed documents are kept."""

    documents: int


class MissingFeatureError(ResemblanceError):
    """The schema needs something that this build is without."""


class NotUtf8Error(ResemblanceError, ValueError):
    """A text is not UTF-8."""


class LockedError(ResemblanceError, OSError):
    """Another process, or another handle of this one, has the store open, and kept it for longer than `wait`.

    `holder` names it, with the number of a process where the system shows it.
    """

    holder: str


class LocksUnsupportedError(ResemblanceError, OSError):
    """The file system has no locks."""


class ForkedError(ResemblanceError):
    """The store was opened before a fork, in another process. Open it in this one."""


class NeedsRecoveryError(ResemblanceError, OSError):
    """The file was not closed properly: open it once for writing."""


class StoppedError(ResemblanceError):
    """A progress callback broke a call off."""


class ReadOnlyError(ResemblanceError):
    """The store was opened for reading only."""


class BusyError(ResemblanceError):
    """This thread has a write transaction open: commit or roll back first."""


class QueueFullError(ResemblanceError):
    """Too many changes wait for a commit already."""


class ClosedError(ResemblanceError, ValueError):
    """The store, snapshot or transaction was closed, or a failure closed it."""


class StoreIOError(ResemblanceError, OSError):
    """The operating system refused an operation on a file."""


class StorageError(ResemblanceError):
    """The storage engine reported an error that has no class here."""
