"""The parts of a schema: how texts become features, and features signatures."""

from __future__ import annotations

from dataclasses import dataclass, fields


class _Part:
    """A part prints its fields that are set, as it would be written."""

    def __repr__(self) -> str:
        shown = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default:
                shown.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Text(_Part):
    """How a text becomes a set of features: each `length` units that follow each other are one.

    `unit` is `"words"`, `"characters"` or `"code"` (tokens of program text). Letters are compared in
    lower case and in Unicode form NFC, and white space and punctuation do not matter between words.
    `keep_case` compares capital letters as they are; `remove_spaces` (of characters) leaves white space
    out; `unordered` ignores the order of the words within a feature. `nfkc`, `strip_accents`,
    `stop_words` and `stem` (codes of languages, such as `"en"`) go further.

    >>> Text.words(5)
    Text(unit='words', length=5)
    """

    unit: str
    length: int
    nfkc: bool = False
    keep_case: bool = False
    strip_accents: bool = False
    remove_spaces: bool = False
    unordered: bool = False
    stop_words: str | None = None
    stem: str | None = None

    @classmethod
    def words(cls, length: int) -> Text:
        """Features of `length` words each. 5 is usual for pages, 2 or 3 for short texts."""
        return cls("words", length)

    @classmethod
    def characters(cls, length: int) -> Text:
        """Features of `length` characters each. 9 to 24 are usual."""
        return cls("characters", length)

    @classmethod
    def code(cls, length: int) -> Text:
        """Features of `length` tokens of source code each."""
        return cls("code", length)


@dataclass(frozen=True, repr=False)
class MinHash(_Part):
    """MinHash: estimates the Jaccard similarity of sets.

    `values` is how many minima a signature has, 16 to 1,024; more make estimates better. Documents
    whose similarity reaches `threshold` are near-duplicates; a pair at the threshold is found with
    the probability `recall`, for which the bands are chosen, unless `bands` and `rows` are given.
    What is `None` has the library's default (0.8 and 0.95).

    `kind` is `"functions"`, `"one-pass"`, `"bottom-k"`, `"weighted"`, `"probability"` (weighted by
    the shares of a document's features), or `"external"` for signatures that are made elsewhere. `value_bits` are the bits that a store keeps of a value.
    """

    values: int = 128
    threshold: float | None = None
    recall: float | None = None
    bands: int | None = None
    rows: int | None = None
    value_bits: int | None = None
    code_bits: int | None = None
    kind: str = "functions"
    permutations: str | None = None


@dataclass(frozen=True, repr=False)
class SimHash(_Part):
    """SimHash: fingerprints of 32, 64 or 128 bits that differ in few bits where documents are nearly
    identical. No document within `max_distance` bits is missed, nor within another distance that a query asks
    for. `tables` are groups of blocks, of which a number lead, such as ((5, 2),) for ten tables, in place of those
    that are chosen. `external` fingerprints, of up to 256 bits, are made elsewhere, such as perceptual hashes of
    images: see `Signature.from_simhash`.
    """

    bits: int = 64
    max_distance: int | None = None
    tables: tuple[tuple[int, int], ...] | None = None
    external: bool = False


@dataclass(frozen=True, repr=False)
class Containment(_Part):
    """Keeps hashes of shingles, so that shared passages are found: *is this paragraph in that page?*

    `shingle` is how many units (words, characters or tokens, as the schema's `Text` defines) a shingle has.
    Of each `window` shingles that follow each other the hash of one is kept (8 if it is `None`): every
    passage of `shingle + window - 1` units that two documents share is found. `scaled` keeps one in so
    many shingles instead, and promises no passage. With `positions` a store keeps the position of each,
    and `Overlap.passages` shows where shared passages are in both documents, without their texts.
    """

    shingle: int
    window: int | None = None
    scaled: int | None = None
    positions: bool = False
