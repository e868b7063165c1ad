"""Folders of shards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .._native import Schema, Store
from ._recipe import Recipe


def shard_file(folder: str, shard: int, shards: int) -> Path:
    """The file of a shard."""
    return Path(folder) / f"shard-{shard:05}-of-{shards:05}.rsm"


@dataclass(frozen=True)
class ShardFolder:
    """All shards of a folder, in their order, and their schema."""

    files: tuple[str, ...]
    schema: Schema
    recipe: Recipe

    @classmethod
    def open(cls, path: str) -> ShardFolder:
        """Finds the shards, and refuses a folder in which one is missing."""
        found = sorted(Path(path).glob("shard-*.rsm"))
        named = re.fullmatch(r"shard-\d+-of-(\d+)\.rsm", found[0].name) if found else None
        if named is None:
            raise ValueError(f"path: found no shards in {path}, expected files shard-*.rsm")
        shards = int(named[1])
        files = [shard_file(path, shard, shards) for shard in range(shards)]
        if found != files:
            raise ValueError(
                f"path: found {len(found)} files shard-*.rsm in {path}, expected the {shards} of "
                f"{files[0].name} to {files[-1].name}"
            )
        with Store.open(str(files[0]), read_only=True) as store:
            schema = store.schema
        return cls(tuple(map(str, files)), schema, Recipe.of(schema))

    def own_schema(self, schema: Schema | None) -> Schema:
        """The schema of the shards, which another one may not contradict."""
        if schema is not None and schema != self.schema:
            raise ValueError("schema: found another than that of the shards, expected the same or none")
        return self.schema
