"""The job on Spark with workers that are processes of their own, as in a cluster."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: the job on Spark is not tested")

from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from test_spark import (  # noqa: E402
    SCHEMA,
    check_files,
    corpus,
    frame,
    kept,
    keys,
    lines,
    pair_lines,
    session,
)

import resemblance as rs  # noqa: E402
from resemblance import spark as rss  # noqa: E402
from resemblance.spark import _job, _recipe, _steps  # noqa: E402

# Workers do not have this file.
register: Any = cloudpickle.register_pickle_by_value
register(sys.modules[__name__])


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two workers of one core."""
    with session("local-cluster[2,1,1024]") as made:
        yield made


def test_files_as_the_command_line_tool_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for n, text in enumerate(corpus(200)):
            key = f"a\tb {n}" if n % 9 == 0 else f"ü{n}"
            out.write(json.dumps({"id": key, "text": text, "n": n}, ensure_ascii=n % 2 == 0) + "\n")
            out.write("\n" if n % 50 == 0 else "")
    check_files(spark, file, tmp_path, 0.6, 2)


def test_new_documents_are_compared_with_shards_and_added(spark: SparkSession, tmp_path: Path) -> None:
    documents, names = corpus(220), keys(corpus(220))
    old, new = documents[:80], documents[80:]
    work, one = str(tmp_path / "work"), tmp_path / "one.rsm"
    folders = [str(tmp_path / "shards" / name) for name in ("1", "2")]
    rss.build_shards(frame(spark, old, 5, 2), SCHEMA, path=folders[0], shards=3, work=work)
    rs.bulk_build(one, list(zip(names, old)), SCHEMA)
    rows = frame(spark, documents, 31, 3).where("ordinal >= 80")
    given = rows.withColumn("ordinal", rows["ordinal"] - 80)
    with rs.Store.open(one) as store:
        result = rss.dedup(given, against=folders[0], key="key", work=work)
        assert result.dropped is not None
        found = result.dropped.orderBy("ordinal").collect()
        columns = ("ordinal", "survivor", "similarity", "distance", "key_ordinal", "key_survivor")
        expected = rs.dedup(list(zip(names[80:], new)), against=store)
        assert [tuple(row[name] for name in columns) for row in found] == [
            (d.position, d.survivor, d.similarity, d.distance, d.key, d.survivor_key)
            for d in expected.duplicates
        ]
        added = kept(result)
        assert added == expected.positions.tolist()
        known = {row["ordinal"] for row in found if row["stored_key"] is not None}
        assert known == {n for n, answer in enumerate(store.query_many(new)) if answer}
        assert result.manifest["counts"]["known"] == len(known) > 5 and len(found) > len(known) + 5
        manifest = rss.add_to_shards(result.frame, path=folders[0], to=folders[1], work=work)
        store.insert_many([new[n] for n in added], [names[80 + n] for n in added])
        assert manifest["counts"]["documents"] == len(store) == 80 + len(added)
        assert manifest["next_stamp"] == 80 + added[-1] + 1
        answers: dict[int, list[Any]] = {n: [] for n in range(len(documents))}
        found = rss.query(frame(spark, documents, 4, 1), path=folders[1], limit=4).collect()
        for row in sorted(found, key=lambda row: (row["query"], row["rank"])):
            answers[row["query"]].append((row["key"], row["similarity"]))
        for n, text in enumerate(documents):
            assert answers[n] == [(match.key, match.similarity) for match in store.query(text, limit=4)]
    # A repeated task does the same, because what it begins with is still there.
    again = rss.add_to_shards(result.frame, path=folders[0], to=folders[1], work=work)
    assert again["shards"] == manifest["shards"]
    with pytest.raises(ValueError, match="expected another one"):
        rss.add_to_shards(result.frame, path=folders[0], to=folders[0], work=work)
    with pytest.raises(Exception, match="KeyExistsError"):
        rss.add_to_shards(result.frame, path=folders[1], to=str(tmp_path / "3"), work=work)
    with pytest.raises(ValueError, match="another than that of the shards"):
        rss.dedup(given, rs.Schema(simhash=rs.SimHash(64)), against=folders[0], work=work)
    next(Path(folders[1]).glob("*.rsm")).unlink()
    with pytest.raises(ValueError, match="found 2 files"):
        rss.query(given, path=folders[1])


def test_a_worker_with_another_recipe_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = frame(spark, corpus(100), 2)
    recipe = _recipe.Recipe.of(SCHEMA)
    others: dict[str, dict[str, Any]] = {
        "resemblance 0.1.0, expected 0.0.9": {"version": "0.0.9"},
        "self-test": {"self_test": recipe.self_test ^ 1},
    }
    for message, change in others.items():
        other = replace(recipe, **change)
        with monkeypatch.context() as patch:
            # As if the driver had another wheel; the workers have this one.
            patch.setattr(_recipe.Recipe, "of", classmethod(lambda cls, schema: other))
            patch.setattr(_recipe, "_open", lambda recipe: SCHEMA)
            with pytest.raises(Exception, match=f"(?s)OtherRecipeError.*{message}"):
                rss.pairs(given, SCHEMA, work=str(tmp_path / "work"))


@dataclass(frozen=True)
class KillOnce:
    """Makes signatures, and kills the executor that it runs in, the first time."""

    rule: _recipe.Rule
    keeps_signatures: bool
    marker: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        yield from _steps.Sketch(self.rule, self.keeps_signatures)(batches)
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return
        process = os.getppid()
        while b"java" not in Path(f"/proc/{process}/cmdline").read_bytes():
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(process, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="the executor is looked for in /proc")
def test_a_killed_executor_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, marker = corpus(120), tmp_path / "killed"
    monkeypatch.setattr(_job, "Sketch", lambda rule, keeps: KillOnce(rule, keeps, str(marker)))
    given = frame(spark, documents, 6, 3)
    result = rss.pairs(given, SCHEMA, work=str(tmp_path / "work"), key="key")
    assert marker.exists()
    assert lines(result) == pair_lines(documents, SCHEMA)
