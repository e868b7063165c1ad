"""The pages of docs/python, and blocks of other pages, are programs: each is run, and has its types checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((ROOT / "python").glob("*.md")), ROOT / "from-datasketch.md"]
PAGES += [Path(__file__).parents[1] / "README.md", ROOT.parent / "SKILL.md"]
PAGES = [page for page in PAGES if page.exists() and "```python" in page.read_text()]


def program(page: Path) -> str:
    return "\n\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))


@pytest.mark.skipif(not PAGES, reason="the pages are not beside this")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path) -> None:
    for package in ("polars", "pyarrow", "imagehash", "sklearn.datasets"):
        if re.search(rf"^(import|from) {package}\b", program(page), re.M):
            pytest.importorskip(package)
    file = tmp_path / f"{page.stem.replace('-', '_')}.py"
    file.write_text(program(page))
    ran = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_types_of_all_pages(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for page in PAGES:
        (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text(program(page))
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout


OF_TYPES = """
import resemblance as rs


def documents(store: rs.Store, if_new: bool) -> int:
    with store.snapshot() as snapshot:
        rs.pairs(["a"], by="vector")
        return len(store.insert_many(["a"], if_new=if_new)) + len(snapshot)
"""


def test_types_of_what_no_page_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "program.py"
    file.write_text(OF_TYPES)
    ran = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_every_page_is_listed() -> None:
    if PAGES:
        listed = (ROOT / "python" / "README.md").read_text()
        pages = [page for page in PAGES if page.is_relative_to(ROOT)]
        assert all(f"({page.name})" in listed or f"(../{page.name})" in listed for page in pages)
