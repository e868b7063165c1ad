#!/usr/bin/env python3
"""Makes a large corpus of edited real pages: JSON Lines with `id` and `text`.

    corpus.py OUT DOCUMENTS [SEED] < texts.jsonl

Standard input has real texts, as JSON Lines. They are cut into pages of about 1,600 characters, and
each page is written in many versions, the first unchanged, each other with a number of edits of its
own: words replaced, dropped and inserted, and passages moved. So the pairs of one page have all
similarities from 0 to 1. The same input and seed give the same bytes.
"""
import json
import random
import re
import sys

PAGE_CHARS = 1_600


def pages(lines):
    for line in lines:
        words = re.findall(r"\S+\s*", json.loads(line)["text"])
        page, length = [], 0
        for word in words:
            page.append(word)
            length += len(word)
            if length >= PAGE_CHARS:
                yield page
                page, length = [], 0


def edited(page, rng, vocabulary):
    words = list(page)
    # Many versions have few edits, the others up to one for three words.
    edits = int(len(words) * rng.random() ** 2 / 3)
    for _ in range(edits):
        at = rng.randrange(len(words))
        what = rng.random()
        if what < 0.5:
            words[at] = rng.choice(vocabulary)
        elif what < 0.7:
            del words[at]
        elif what < 0.9:
            words.insert(at, rng.choice(vocabulary))
        else:
            end = min(len(words), at + 12)
            passage = words[at:end]
            del words[at:end]
            to = rng.randrange(len(words) + 1)
            words[to:to] = passage
        if not words:
            break
    return "".join(words)


def main():
    out, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    base, seen = [], set()
    for page in pages(sys.stdin):
        text = "".join(page)
        if text not in seen:
            seen.add(text)
            base.append(page)
    vocabulary = [word for page in rng.sample(base, min(len(base), 2_000)) for word in page]
    rng.shuffle(base)
    with open(out, "w", encoding="utf-8") as file:
        for number in range(count):
            version, page = divmod(number, len(base))
            words = base[page]
            text = "".join(words) if version == 0 else edited(words, rng, vocabulary)
            file.write(json.dumps({"id": f"{page:06}-{version:03}", "text": text}, ensure_ascii=False))
            file.write("\n")


main()
