"""The parts of a schema: how texts become features, and features signatures."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


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
    """How a text becomes a set of features. A feature is `length` consecutive units.

    `unit` is `"auto"` (characters of scripts without spaces between words, such as Chinese or Thai, and
    words of others), `"words"`, `"characters"` or `"code"` (tokens of program text). Letters are compared in
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
    def auto(cls, length: int = 5) -> Text:
        """Features of `length` characters or words, as the script of each part of the text is written."""
        return cls("auto", length)

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

    `values` is the number of minima in a signature, 16 to 1,024; more values give better estimates.
    Documents whose similarity reaches `threshold` are near-duplicates; a pair at the threshold is found
    with the probability `recall`, for which the bands are chosen, unless `bands` and `rows` are given.
    `None` selects the library's default (0.8 and 0.95).

    `kind` is `"functions"`, `"one-pass"`, `"bottom-k"`, `"weighted"`, `"probability"` (weighted by the
    shares of a document's features), or `"external"` for signatures of another program. `value_bits` is
    the number of bits that a store keeps of a value.
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
class Vector(_Part):
    """Dense vectors, such as embeddings, in place of MinHash. `Schema.sketch_vectors` takes them from NumPy.

    The similarity of two vectors is their cosine, where a negative one counts as 0, or 1 / (1 + d) at a
    Euclidean distance of d. Vectors with a similarity of at least `threshold` are near-duplicates; `None`
    selects 0.95 for a cosine, and for a Euclidean metric the similarity at `distance`. A pair at the
    threshold is found with the probability `recall` (0.95), for which bands of `values` hash values (1,024 for a
    cosine, 512 for a distance) are chosen, unless `bands` and `rows` are given.

    `kept` is the form in which a store keeps vectors for the exact comparison: `"f32"`, `"f16"`, `"i8"`, or
    `None`, with which all similarities are estimates.

    >>> Vector.cosine(384, threshold=0.9)
    Vector(dimensions=384, threshold=0.9)
    """

    dimensions: int
    metric: str = "cosine"
    distance: float | None = None
    threshold: float | None = None
    recall: float | None = None
    values: int | None = None
    bands: int | None = None
    rows: int | None = None
    code_bits: int | None = None
    kept: str | None = "f32"

    @classmethod
    def cosine(cls, dimensions: int, **settings: Any) -> Vector:
        """Vectors that are compared by the cosine of their angle."""
        return cls(dimensions, "cosine", **settings)

    @classmethod
    def euclidean(cls, dimensions: int, distance: float, **settings: Any) -> Vector:
        """Vectors that are near within a Euclidean distance."""
        return cls(dimensions, "euclidean", distance, **settings)

    def similarity_at(self, distance: float) -> float:
        """Returns the similarity of vectors at a distance: a Euclidean one, or 1 - cos."""
        return 1 - distance if self.metric == "cosine" else 1 / (1 + distance)

    def distance_at(self, similarity: float) -> float:
        """Returns the distance at which vectors have a similarity: a Euclidean one, or 1 - cos."""
        return 1 - similarity if self.metric == "cosine" else 1 / similarity - 1


@dataclass(frozen=True, repr=False)
class SimHash(_Part):
    """SimHash: fingerprints of 32, 64 or 128 bits that differ in few bits where documents are nearly
    identical. A search finds every document within `max_distance` bits, or within any other distance
    that a query sets. `tables` sets groups of blocks, each with a number of leading blocks, such as
    ((5, 2),) for ten tables; otherwise tables are chosen. `external` fingerprints of up to 256 bits
    come from another program, such as perceptual hashes of images: see `Signature.from_simhash`. With
    `term_counts`, a feature without a weight weighs 1 each time it occurs, instead of 1 in all.
    """

    bits: int = 64
    max_distance: int | None = None
    tables: tuple[tuple[int, int], ...] | None = None
    external: bool = False
    term_counts: bool = False


@dataclass(frozen=True, repr=False)
class Containment(_Part):
    """Keeps hashes of shingles, by which queries find shared passages: *is this paragraph in that
    page?*

    `shingle` is the number of units (words, characters or tokens, as the schema's `Text` defines) in a
    shingle. One hash is kept of every `window` consecutive shingles (default: 8), so that every passage
    of `shingle + window - 1` units that two documents share is found. `scaled` keeps one in that number
    of shingles instead, and guarantees no passage. With `positions`, a store also keeps the position of
    each, and `Overlap.passages` shows where shared passages are in both documents, without their texts.
    """

    shingle: int
    window: int | None = None
    scaled: int | None = None
    positions: bool = False
