"""examples/read_store.py, which reads stores without the library, on every golden store."""

import gzip
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "format-1"
PARTS = ("document ", "  empty", "  minhash", "  bottom-k", "  simhash", "  kept", "  set", "  weights", "  vector")


def read(store: Path) -> tuple[list[str], str]:
    script = ROOT / "examples" / "read_store.py"
    command = [sys.executable, "-I", "-X", "utf8", str(script), str(store)]
    run = subprocess.run(command, capture_output=True, check=False)
    assert (run.returncode == 0) == (run.stderr == b""), run.stderr
    return run.stdout.decode().splitlines(), run.stderr.decode()


def unpacked(name: str, to: Path) -> Path:
    store = to / f"{name}.rsm"
    store.write_bytes(gzip.decompress((GOLDEN / f"{name}.rsm.gz").read_bytes()))
    return store


def expected(name: str) -> list[str]:
    """The lines about documents and clusters, which the library wrote."""
    lines = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    members = (line.rsplit(", ", 1)[0] for line in lines if line.startswith("kept "))
    return [line for line in lines if line.startswith(PARTS)] + list(members)


def as_json(line: str) -> str:
    """A line with its key as JSON, and not as a string of Rust."""
    escapes = {"0": "\0", "t": "\t", "n": "\n", "r": "\r"}

    def character(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else escapes.get(escape[2], escape[2])

    def key(found: re.Match[str]) -> str:
        text = re.sub(r"\\u\{([0-9a-f]+)\}|\\(.)", character, found[1])
        return f"key {json.dumps(text, ensure_ascii=False)} stamp"

    return re.sub('key "(.*)" stamp', key, line)


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".rsm.gz") for path in GOLDEN.glob("*.gz")))
def test_a_golden_store_is_read_as_the_library_reads_it(name: str, tmp_path: Path) -> None:
    lines, error = read(unpacked(name, tmp_path))
    assert (error, lines) == ("", [as_json(line) for line in expected(name)])


def changed(store: Path, old: bytes, new: bytes) -> Path:
    content = store.read_bytes()
    assert old in content
    store.write_bytes(content.replace(old, new))
    return store


def test_a_damaged_value_is_reported(tmp_path: Path) -> None:
    store = unpacked("words", tmp_path)
    _, error = read(changed(store, b"https://example.org/5/", b"https://example.org/6/"))
    assert "table documents, key 0000000000000005: the checksum is wrong" in error


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    def header(oldest: int) -> bytes:
        body = b"RESEMBL\x1a" + b"\x01\0" + oldest.to_bytes(2, "little") + bytes(24)
        return body + zlib.crc32(b"meta\0header" + body).to_bytes(4, "little")

    _, error = read(changed(unpacked("words", tmp_path), header(1), header(2)))
    assert "the store needs a reader of format 2" in error
