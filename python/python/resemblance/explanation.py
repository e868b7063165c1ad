"""Two texts explained: how similar they are by every measure, and where."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ._native import Schema, explanation_of_texts
from .corpus import _schema
from .exact import SharedPassage, SharedSpans

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """Two texts compared in every way that a schema supports, as returned by `explain`.

    - `shared`: the shared shingles, their positions, and the exact similarities of the sets of shingles;
    - `longest`: the longest passage that both have, or `None`;
    - `estimate`: the similarity by the MinHash values of the schema, `distance` that by its fingerprints, in
      bits; `None` without these;
    - `weighted_similarity`: the exact similarity that the schema estimates, if it uses weights;
    - `weighted_cosine`: the exact cosine of how often each shingle occurs, if the schema has weighted
      MinHash; SimHash sees the set of the shingles.

    A notebook shows both texts side by side, with what they share in green.
    """

    a: str
    b: str
    shared: SharedSpans
    longest: SharedPassage | None
    estimate: float | None
    weighted_similarity: float | None
    weighted_cosine: float | None
    distance: int | None

    def _repr_html_(self) -> str:
        figures = {
            "similarity": self.shared.jaccard,
            "estimate": self.estimate,
            "cosine": self.shared.cosine,
            "Dice": self.shared.dice,
            "overlap": self.shared.overlap,
            "share of a": self.shared.share_of_a,
            "share of b": self.shared.share_of_b,
            "distance": self.distance,
        }
        shown = (f"{name} {number:.4g}" for name, number in figures.items() if number is not None)
        cells = (_marked(self.a, self.shared.spans_a), _marked(self.b, self.shared.spans_b))
        style = "text-align:left;vertical-align:top;white-space:pre-wrap"
        columns = "".join(f'<td style="{style}">{cell}</td>' for cell in cells)
        return f"<div><p>{', '.join(shown)}</p><table><tr>{columns}</tr></table></div>"


def _marked(text: str, spans: list[tuple[int, int]]) -> str:
    parts, end = [], 0
    for start, next_end in spans:
        shared = escape(text[start:next_end])
        parts += [escape(text[end:start]), f'<span style="background:#cfc">{shared}</span>']
        end = next_end
    return "".join([*parts, escape(text[end:])])


def explain(a: str, b: str, schema: Schema | None = None) -> Explanation:
    """Explains why two texts are similar or not: similarities, estimates, and the parts that they
    share.

    Without a schema shingles are those of `Text.auto()`, as in `dedup`.

    >>> found = explain("the cat sat here", "The cat sat!", Schema(text=Text.words(2), minhash=MinHash(64)))
    >>> found.shared.jaccard, found.shared.overlap, found.longest
    (0.6666666666666666, 1.0, SharedPassage(a=(0, 11), b=(0, 11), shingles=2))
    """
    return explanation_of_texts(a, b, _schema(schema))
