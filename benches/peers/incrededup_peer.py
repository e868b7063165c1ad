"""incrededup: TASK CORPUS OUT STATE, with SQLite as its source.

It compares character 3-grams, whatever it is asked, so its pairs are others than those of the truth. The
time to fill the SQLite database is counted: it is part of the way of a corpus in.
"""

import sqlite3
import subprocess
import sys
import uuid
from pathlib import Path

from shared import THRESHOLD, documents, write_kept

BINARY = Path(__file__).parents[2] / "target/peers/cargo/bin/incrededup"
SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (id TEXT PRIMARY KEY, content TEXT NOT NULL,
    content_len INTEGER NOT NULL, filename TEXT, is_parent INTEGER);
CREATE TABLE IF NOT EXISTS dupes (child_id TEXT PRIMARY KEY, parent_id TEXT NOT NULL,
    jaccard_similarity REAL NOT NULL, size_difference INTEGER NOT NULL,
    size_difference_pct REAL NOT NULL);
"""


def run(rows, state):
    folder = Path(state)
    folder.mkdir(exist_ok=True)
    database = folder / "source.sqlite"
    with sqlite3.connect(database) as source:
        source.executescript(SCHEMA)
        added = (
            (str(uuid.uuid5(uuid.NAMESPACE_URL, id)), text, len(text.encode()), id)
            for id, text in rows
        )
        source.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, NULL)", added)
    # fmt: off
    command = [
        BINARY, "--sqlite", database, "--data-dir", folder / "sidecars",
        "--threshold", THRESHOLD, "--min-content-len", 0,
    ]
    # fmt: on
    subprocess.run([str(part) for part in command], check=True)
    with sqlite3.connect(database) as source:
        kept = source.execute("SELECT filename FROM documents WHERE is_parent = 1")
        return {id for (id,) in kept}


def dedup(corpus, out, state):
    write_kept(corpus, out, run(documents(corpus), state))
    # What it needs from now on: the texts stay in the source.
    (Path(state) / "source.sqlite").unlink()


globals()[sys.argv[1]](*sys.argv[2:])
