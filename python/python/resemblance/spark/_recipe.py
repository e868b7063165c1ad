"""What workers must agree on, and refuse to differ in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from .. import _native
from .._native import PairRule, Schema
from ..errors import OtherRecipeError

By = Literal["minhash", "simhash", "any", "both"]


@dataclass(frozen=True)
class Recipe:
    """A schema, and the numbers by which a worker shows that it hashes as the driver does."""

    schema: bytes
    fingerprint: int
    self_test: int
    version: str

    @classmethod
    def of(cls, schema: Schema) -> Recipe:
        return cls(
            schema.to_bytes(), schema.recipe_fingerprint, schema.self_test, _native.__version__
        )

    def open(self) -> Schema:
        """Returns the schema, or refuses to work with another version of this package."""
        return _open(self)


@lru_cache(maxsize=4)
def _open(recipe: Recipe) -> Schema:
    if _native.__version__ != recipe.version:
        raise OtherRecipeError(
            f"worker: found resemblance {_native.__version__}, expected {recipe.version}, which the "
            "driver has; install one wheel on all workers"
        )
    schema = Schema.from_bytes(recipe.schema)
    found = Recipe.of(schema)
    if found != recipe:
        raise OtherRecipeError(
            f"worker: found recipe {found.fingerprint:016x} with self-test {found.self_test:016x}, "
            f"expected {recipe.fingerprint:016x} with {recipe.self_test:016x}, which the driver has; "
            "install one wheel on all workers"
        )
    return schema


@dataclass(frozen=True)
class Rule:
    """A recipe with the bounds of a join."""

    recipe: Recipe
    exact: bool
    threshold: float | None = None
    max_distance: int | None = None
    by: By | None = None
    max_bucket: int | None = None

    def open(self) -> PairRule:
        """Returns the native half of the rule."""
        return _open_rule(self)


@lru_cache(maxsize=4)
def _open_rule(rule: Rule) -> PairRule:
    return PairRule(
        rule.recipe.open(),
        threshold=rule.threshold,
        max_distance=rule.max_distance,
        by=rule.by,
    )
