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
from test_spark import SCHEMA, check_files, corpus, frame, lines, pair_lines, session, tool  # noqa: E402

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
    binary = tool()
    if binary is None:
        pytest.skip("the command-line tool is not built: its files are not compared")
    file = tmp_path / "corpus.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for n, text in enumerate(corpus(200)):
            key = f"a\tb {n}" if n % 9 == 0 else f"ü{n}"
            out.write(json.dumps({"id": key, "text": text, "n": n}, ensure_ascii=n % 2 == 0) + "\n")
            out.write("\n" if n % 50 == 0 else "")
    check_files(spark, binary, file, tmp_path, 0.6, 2)


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
    marker: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        yield from _steps.Sketch(self.rule)(batches)
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
    monkeypatch.setattr(_job, "Sketch", lambda rule: KillOnce(rule, str(marker)))
    given = frame(spark, documents, 6, 3)
    result = rss.pairs(given, SCHEMA, work=str(tmp_path / "work"), key="key")
    assert marker.exists()
    assert lines(result) == pair_lines(documents, SCHEMA)
