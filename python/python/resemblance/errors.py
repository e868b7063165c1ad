"""The exceptions of this package, one for each kind of error of the library.

All are below `ResemblanceError`, and below `ValueError`, `KeyError`, `FileExistsError`,
`FileNotFoundError` or `OSError` where one of these fits. Each has the bounds, files and keys that it
concerns as attributes.
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
    """A bug in the library. Nothing was committed. Please report it."""


class InvalidParameterError(ResemblanceError, ValueError):
    """A parameter is out of range."""

    parameter: str
    found: str
    expected: str


class KeyExistsError(ResemblanceError, KeyError):
    """`insert` found the key in the store. Use `upsert` to replace the document."""

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
    """`create` found an existing file, which it did not change."""


class NotFoundError(ResemblanceError, FileNotFoundError):
    """`open` found no file. It never creates one."""


class NotAStoreError(ResemblanceError, ValueError):
    """The file is not a store. It was not changed."""

    filename: str


class NewerFormatError(ResemblanceError):
    """A newer release wrote the file."""


class UnknownFeaturesError(ResemblanceError):
    """The file uses features that this release does not know."""


class UnknownLayoutError(ResemblanceError):
    """The pages of the file have a layout that this release does not know."""


class UntriedEngineError(ResemblanceError):
    """This build has a storage engine with which it was not tested."""


class CorruptError(ResemblanceError):
    """The file is damaged. `check` reports where, and `repair` keeps what can be read."""


class SelfTestError(ResemblanceError):
    """This build hashes differently from the one that made the store."""


class DamagedStreamError(ResemblanceError, ValueError):
    """An exported file is damaged or truncated, or is not an export."""

    documents: int


class OtherRecipeError(ResemblanceError, ValueError):
    """The documents of an exported file were made with a different recipe."""


class ImportStoppedError(ResemblanceError):
    """An import ended early. Committed documents are kept."""

    documents: int


class MissingFeatureError(ResemblanceError):
    """The schema requires a feature that is not part of this build."""


class NotUtf8Error(ResemblanceError, ValueError):
    """A text is not UTF-8."""


class LockedError(ResemblanceError, OSError):
    """Another process, or another handle of this one, kept the store open for longer than `wait`.
    `holder` names it, with its process number if the system shows it.
    """

    holder: str


class LocksUnsupportedError(ResemblanceError, OSError):
    """The file system has no locks."""


class ForkedError(ResemblanceError):
    """The store was opened before a fork, in another process. Open it in this one."""


class NeedsRecoveryError(ResemblanceError, OSError):
    """The file was not closed properly. Open it once for writing."""


class StoppedError(ResemblanceError):
    """A progress callback stopped a call."""


class ReadOnlyError(ResemblanceError):
    """The store was opened for reading only."""


class BusyError(ResemblanceError):
    """This thread has a write transaction open: commit or roll back first. Or a call runs this code,
    such as the callable of a filter, and the code uses the object of that call.
    """


class QueueFullError(ResemblanceError):
    """The write queue is full. Wait for outstanding tickets first."""


class ClosedError(ResemblanceError, ValueError):
    """The store, snapshot or transaction was closed, or a failure closed it."""


class StoreIOError(ResemblanceError, OSError):
    """The operating system refused an operation on a file."""


class StorageError(ResemblanceError):
    """The storage engine reported an error that has no class here."""
