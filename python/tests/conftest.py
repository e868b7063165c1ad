"""Documents and stores for tests, and an oracle that needs neither."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import resemblance as rs

_Answer = TypeVar("_Answer")

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def texts(count: int, seed: int = 1, words: int = 60) -> list[str]:
    """Texts of which a third is like an earlier one, more or less."""
    chance = random.Random(seed)
    made: list[str] = []
    for _ in range(count):
        if made and chance.random() < 0.33:
            kept = chance.choice(made).split()
            for _ in range(chance.choice([0, 1, 3, 10])):
                kept[chance.randrange(len(kept))] = chance.choice(WORDS)
        else:
            kept = chance.choices(WORDS, k=words)
        made.append(" ".join(kept))
    return made


def shingles(text: str, length: int = 2) -> frozenset[tuple[str, ...]]:
    """What `Text.words(length)` makes of plain ASCII."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    if len(found) < length:
        return frozenset([tuple(found)] if found else [])
    return frozenset(tuple(found[i : i + length]) for i in range(len(found) - length + 1))


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def near_pairs(documents: list[str], threshold: float) -> set[tuple[int, int]]:
    """All pairs whose exact similarity reaches the threshold."""
    sets = [shingles(text) for text in documents]
    return {
        (i, j)
        for j in range(len(sets))
        for i in range(j)
        if jaccard(sets[i], sets[j]) >= threshold
    }


def in_time(work: Callable[[], _Answer], seconds: float = 30) -> _Answer:
    """Works in a thread, so that a call that never returns fails its test."""
    answers: list[_Answer] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "the call does not return"
    if raised:
        raise raised[0]
    return answers[0]


def tool() -> str:
    """The path of the command-line tool."""
    root = Path(__file__).parents[2]
    for name in (os.environ.get("RESEMBLANCE_TOOL"), shutil.which("resemblance")):
        if name and Path(name).exists():
            return name
    found = [root / "target" / profile / "resemblance" for profile in ("release", "debug")]
    built = [path for path in found if path.exists()]
    if built:
        # An old one may not know what is tested.
        return str(max(built, key=lambda path: path.stat().st_mtime))
    pytest.skip("the command-line tool is not built")


def run_tool(*arguments: object, environment: dict[str, str] | None = None) -> bytes:
    """Runs the tool, and returns its output. A test that needs a feature that is not in it is skipped."""
    ran = subprocess.run(
        [tool(), *map(str, arguments)], capture_output=True, check=False, env=environment
    )
    said = ran.stderr.decode(errors="replace")
    if re.search("not part of this build|which this build does not|this build does not write", said):
        pytest.skip(f"the command-line tool is built without a feature: {said}")
    assert ran.returncode in (0, 1), said
    return ran.stdout


def tool_lines(*arguments: object) -> list[str]:
    """The lines that the tool prints."""
    return run_tool(*arguments).decode().splitlines()


@pytest.fixture
def schema() -> rs.Schema:
    return rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.rsm"


@pytest.fixture
def store(path: Path, schema: rs.Schema) -> Iterator[rs.Store]:
    with rs.Store.create(path, schema) as store:
        yield store
