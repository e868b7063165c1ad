"""What all peer programs share: reading corpora, and the shingles by which documents are compared."""

import gzip
import json
import re

THRESHOLD = 0.8
VALUES = 128
# Our own bands at this threshold and a recall of 0.95; peers that can be told get the same.
BANDS, ROWS = 13, 7

WORD = re.compile(r"[^\W_]+")


def lines(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        yield from file


def documents(path):
    """Yields the id and text of each document."""
    for line in lines(path):
        document = json.loads(line)
        yield document["id"], document["text"]


def shingles(text):
    """The set of five words in a row, as the truth has it."""
    words = WORD.findall(text.lower())
    if not words:
        return set()
    count = max(1, len(words) - 4)
    return {" ".join(words[first : first + 5]) for first in range(count)}


def write_pairs(path, pairs):
    """Writes pairs of ids, one a line."""
    with open(path, "w", encoding="utf-8") as file:
        for a, b in pairs:
            file.write(f"{a}\t{b}\n")


def write_kept(corpus, path, kept):
    """Writes the documents of a corpus whose ids are in a set."""
    with open(path, "w", encoding="utf-8") as file:
        for line in lines(corpus):
            if json.loads(line)["id"] in kept:
                file.write(line)
