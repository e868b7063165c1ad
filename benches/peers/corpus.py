#!/usr/bin/env python3
"""Makes a large corpus with known near-duplicates: JSON Lines with `id` and `text`.

    corpus.py OUT DOCUMENTS [SEED] < texts.jsonl
    corpus.py --documents N [--seed S] [--shard N] [--processes N] FOLDER

The first form edits real pages. Standard input has real texts, as JSON Lines. They are cut into pages
of about 1,600 characters, and each page is written in many versions, the first unchanged, each other
with a number of edits: words replaced, dropped and inserted, and passages moved. So the pairs of one
page have all similarities from 0 to 1. The same input and seed give the same bytes.

The second form reads nothing and makes pages like those of the web, of any number. It writes
FOLDER/pages/NNNNN.jsonl.zst through the program `zstd`, the truth in FOLDER/truth/NNNNN.tsv.zst, and
FOLDER/shards.tsv with the documents, bytes and SHA-256 of each uncompressed shard. The pages depend
only on N and the seed. A run that was interrupted continues with the shards that `shards.tsv` lacks.
The structure, and where it comes from:

- Words follow Zipf's law with two exponents, 1 for the first 7,873 ranks and 1.77 beyond (Gerlach and
  Altmann, "Stochastic Model for the Vocabulary Growth in Natural Languages", 2013). The vocabulary has
  no end. Two draws in three are phrases of two to four words from a list, so that unrelated pages share
  a few shingles, as they do on the web.
- Lengths are log-normal, about 50 words at least, as the filter of Gopher requires, which FineWeb uses
  (Penedo et al., "The FineWeb Datasets", 2024). The mean of 2.3 KB, or 450 words, is below that of
  FineWeb, whose sample of 10 billion tokens has 14.9 million documents.
- Four pages in ten are in families of two or more. Broder et al. ("Syntactic Clustering of the Web",
  1997) found 12.3 of 30 million pages in 3.6 million clusters, Fetterly et al. ("On the Evolution of
  Clusters of Near-Duplicate Web Pages", 2003) 29 % of pages very similar to others. SlimPajama
  (Cerebras, 2023) has half of the bytes of RedPajama, without its near-duplicates and short texts.
- Sizes of families follow a power law with exponent 2.5. Broder's mean of 3.4 pages needs 2.9. Lee et
  al. ("Deduplicating Training Data Makes Language Models Better", 2021) found 1.8 million pairs and 280
  clusters above 5,000 in C4, which needs 2.2. No family exceeds 1,000 pages: with larger ones, lists of
  pairs would grow with the square of the corpus.
- A page is on a site, and sites have from a few to thousands of pages. The pages of a site share its
  boilerplate: navigation, a footer, and a cookie banner and a licence that other sites use too. It is
  a tenth of all text (our assumption for extracted text) and never more than the content.

A key is FAMILY-VERSION-CLASS. Class `original` is the first version, and the only one of most families.
The others are made from it: `exact` is the same text (half of the others; Fetterly's pages very similar
to others are virtually identical in three cases of four); `site` has the content with another site's
boilerplate; `few` has edits in up to 1.2 % of its words, at least one; `many` in 4 to 40 %, so that its
similarity by five words is below 0.8; `longer` holds the whole page and one to four times as much;
`part` is a passage of the content. The truth has for each page its key, family, class, words, and the
share of its words that are not from the original, or were edited.
"""
import argparse
import bisect
import functools
import gc
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import random
import re
import statistics
import subprocess
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


def edited(page, edits, rng, vocabulary):
    words = list(page)
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


def edit_real_pages(out, count, seed):
    rng = random.Random(seed)
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
            text = "".join(words)
            if version > 0:
                # Many versions have few edits, the others up to one for three words.
                edits = int(len(words) * rng.random() ** 2 / 3)
                text = edited(words, edits, rng, vocabulary)
            file.write(json.dumps({"id": f"{page:06}-{version:03}", "text": text}, ensure_ascii=False))
            file.write("\n")


# The language: words by rank, and a table of words and phrases in which each has slots by its frequency.

COMMON = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an "
    "they which one you were all her she there would their we him been has when who will no more if out so up "
    "said what its about than into them can only other time new some could these two may first then do any "
    "like my now over such our man me even most made after also did many off before must well back through "
    "years much where your way down should because long each just state people those too mr how little good "
    "world make very year still see work life here get both between own under never day same another know "
    "while last might us great old since against go come right used take three"
).split()
ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl cr dr fl fr gr pl pr qu sc sh sl sp st str th tr é".split()
VOWELS = "a e i o u ai ea ee ie io oo ou".split()
CODAS = ["", "n", "r", "l", "s", "t", "d", "m", "ck", "nd", "ng", "nt", "rd", "rn", "rs", "st", "x"]
SYLLABLES = ["".join(parts) for parts in itertools.product(ONSETS, VOWELS, CODAS)]
SLOT_BITS, TABLED, PHRASES, BEND = 18, 20_000, 20_000, 7_873
RARE_SHARE = 1 / 24


def word(rank):
    if rank < len(COMMON):
        return COMMON[rank]
    # Ranks are spread over the syllables, so that neighbours do not look alike. Frequent words are short.
    rest, text = rank * 5_003, ""
    while rank > 0:
        text = SYLLABLES[rest % len(SYLLABLES)] + text
        rest //= len(SYLLABLES)
        rank //= len(SYLLABLES)
    return text


def rare_word(random_32):
    """Returns a word beyond the table, with a random rank of which few occur twice."""
    return word(min(1 << 48, int(TABLED * ((1 << 32) / (random_32 + 1)) ** (1 / 0.77))))


@functools.lru_cache(maxsize=1)
def slots():
    rng = random.Random(20)
    total = 1 << SLOT_BITS
    weights = [1 / (rank + 1) if rank < BEND else BEND**0.77 / (rank + 1) ** 1.77 for rank in range(TABLED)]
    words = [word(rank) for rank in range(TABLED)]
    cumulative = list(itertools.accumulate(weights))
    phrases = []
    for length in rng.choices((2, 3, 4), (3, 4, 3), k=PHRASES):
        phrases.append(" ".join(rng.choices(words, cum_weights=cumulative, k=length)))
    phrase_weights = [1 / (rank + 20) for rank in range(PHRASES)]
    scale = total / 3 / sum(weights)
    phrase_scale = total * 2 / 3 / sum(phrase_weights)
    table = []
    for entries, slots_each in (
        (words, [weight * scale for weight in weights]),
        (phrases, [weight * phrase_scale for weight in phrase_weights]),
    ):
        due = 0.0
        for entry, share in zip(entries, slots_each):
            due += share
            table.extend([entry] * int(due))
            due -= int(due)
    return (table + table)[:total]


def draws(key, count):
    """Returns `count` numbers of 32 bits that depend only on the key."""
    raw = hashlib.shake_128(key.encode()).digest(4 * count)
    numbers = memoryview(raw).cast("I")
    if sys.byteorder == "big":
        return [int.from_bytes(number.to_bytes(4, "big"), "little") for number in numbers]
    return numbers


def prose(key, count):
    """Returns sentences and paragraphs of `count` words and phrases."""
    numbers = draws(key, count)
    table = slots()
    mask = len(table) - 1
    words = [table[number & mask] for number in numbers]
    for at in range(int(count * RARE_SHARE)):
        number = numbers[at]
        words[(number >> 3) % count] = rare_word(number * 2_654_435_761 & 0xFFFF_FFFF)
    start = 0
    while start < count:
        shape = numbers[start] >> SLOT_BITS
        end = min(count, start + 3 + (shape & 7) + (shape >> 6 & 3))
        words[start] = words[start].capitalize()
        words[end - 1] += ".\n" if shape & 0x30 == 0x30 else "."
        start = end
    return " ".join(words).replace("\n ", "\n").rstrip("\n")


# The structure: families by size, the place of each page, and its text.

SIZE_EXPONENT, LARGEST_FAMILY, IN_FAMILIES = 2.5, 1_000, 0.4
CLASSES = ["exact"] * 10 + ["site"] * 4 + ["few"] * 3 + ["many", "longer", "part"]
LENGTHS = 1 << 12
MEDIAN_DRAWS, SPREAD, LEAST_DRAWS = 112, 0.95, 24
BANNERS = 40


class Layout:
    """Says which version of which family a page is. Nothing is kept for each page."""

    def __init__(self, documents, seed):
        self.documents, self.seed = documents, seed
        sizes = range(2, LARGEST_FAMILY + 1)
        scale = documents * IN_FAMILIES / sum(size ** (1 - SIZE_EXPONENT) for size in sizes)
        # Positions from which families have a size, the sizes, and the numbers of their first families.
        self.starts, self.sizes, self.firsts = [], [], []
        position = families = 0
        due = 0.0
        for size in sizes:
            due += scale * size**-SIZE_EXPONENT
            count = min(int(due), (documents - position) // size)
            due -= count
            if count > 0:
                self.starts.append(position)
                self.sizes.append(size)
                self.firsts.append(families)
                position += count * size
                families += count
        self.starts.append(position)
        self.sizes.append(1)
        self.firsts.append(families)
        self.half = (documents.bit_length() + 1) // 2
        self.keys = list(draws(f"{seed} order", 4))

    def position(self, number):
        """Returns the number's place in a permutation, so that the pages of a family are anywhere."""
        mask = (1 << self.half) - 1
        while True:
            left, right = number >> self.half, number & mask
            for key in self.keys:
                mixed = (right + key) * 0x9E37_79B9_7F4A_7C15
                left, right = right, left ^ (mixed >> 29 & mask)
            number = left << self.half | right
            if number < self.documents:
                return number

    def page(self, number):
        """Returns the family and the version."""
        position = self.position(number)
        at = bisect.bisect_right(self.starts, position) - 1
        family, version = divmod(position - self.starts[at], self.sizes[at])
        return self.firsts[at] + family, version


@functools.lru_cache(maxsize=1)
def lengths():
    normal = statistics.NormalDist()
    quantiles = (normal.inv_cdf((at + 0.5) / LENGTHS) for at in range(LENGTHS))
    return [max(LEAST_DRAWS, round(MEDIAN_DRAWS * math.exp(SPREAD * at))) for at in quantiles]


@functools.lru_cache(maxsize=100_000)
def boilerplate(seed, site):
    """Returns what precedes and what follows the content on all pages of a site."""
    has, banner, licence, size = draws(f"{seed} site {site}", 4)
    before = after = ""
    if has & 3:
        before = prose(f"{seed} navigation {site}", 4 + size % 10) + "\n"
    if has >> 2 & 3 == 0:
        before += prose(f"{seed} banner {banner % BANNERS}", 19) + "\n"
    if has >> 4 & 1:
        after = "\n" + prose(f"{seed} footer {site}", 4 + (size >> 8) % 8)
    if has >> 5 & 3 == 0:
        after += "\n" + prose(f"{seed} licence {licence % BANNERS}", 23)
    return before, after


def with_boilerplate(content, seed, site):
    before, after = boilerplate(seed, site)
    if len(before) + len(after) > len(content):
        before, after = "", ""
    return before + content + after


class Page:
    """The text of a page, its class, and the share of its words that are new or edited."""

    def __init__(self, layout, number):
        family, version = layout.page(number)
        seed = layout.seed
        self.family, self.kind, self.changed = family, "original", 0.0
        length, site = draws(f"{seed} family {family}", 2)
        # The largest of the sites has one page in the square root of their number.
        sites = layout.documents // 30 + 1
        site = int(sites * (site / 2**32) ** 2)
        content = prose(f"{seed} content {family}", lengths()[length % LENGTHS])
        self.text = with_boilerplate(content, seed, site)
        if version > 0:
            kind, another, share = draws(f"{seed} version {family} {version}", 3)
            self.kind = CLASSES[kind % len(CLASSES)]
            if self.kind == "site":
                self.text = with_boilerplate(content, seed, (site + 1 + another % 1_000) % sites)
                self.changed = 1 - count_words(content) / count_words(self.text)
            elif self.kind in ("few", "many"):
                self.edit(random.Random(f"{seed} edit {family} {version}"), share / 2**32)
            elif self.kind == "longer":
                before = count_words(self.text)
                # A draw has more than two words.
                count = int(content.count(" ") * (0.45 + 1.3 * share / 2**32))
                more = prose(f"{seed} more {family} {version}", count)
                self.text = f"{self.text}\n{more}" if another & 1 else f"{more}\n{self.text}"
                self.changed = 1 - before / count_words(self.text)
            elif self.kind == "part":
                words = content.split(" ")
                taken = max(40, int(len(words) * (0.2 + 0.6 * share / 2**32)))
                start = another % max(1, len(words) - taken)
                self.text = " ".join(words[start : start + taken])
        self.key = f"{family:08}-{version:04}-{self.kind}"

    def edit(self, rng, share):
        words = re.findall(r"\S+\s*", self.text)
        rate = 0.012 * share if self.kind == "few" else 0.04 * 10**share
        edits = max(1, int(len(words) * rate))
        vocabulary = [f"{entry.split(' ')[0]} " for entry in rng.choices(slots(), k=edits)]
        self.text = edited(words, edits, rng, vocabulary).rstrip()
        self.changed = edits / len(words)


def count_words(text):
    return text.count(" ") + text.count("\n") + 1


class Zstd:
    """A file that `zstd` writes. It has its name when it is complete."""

    def __init__(self, path):
        self.path = path
        command = ["zstd", "-q", "-f", "-3", "-T1", "-o", f"{path}.part"]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE)
        self.write = self.program.stdin.write

    def close(self):
        self.program.stdin.close()
        if self.program.wait() != 0:
            raise OSError(f"zstd cannot write {self.path}")
        os.rename(f"{self.path}.part", self.path)


class Shards:
    """Writes the shards of a corpus, each the same whoever writes it."""

    def __init__(self, folder, documents, seed, size):
        self.folder, self.size = folder, size
        self.layout = Layout(documents, seed)
        # Before the processes are forked, so that they share them. No object is in a cycle.
        slots()
        lengths()
        gc.disable()

    def __call__(self, shard):
        first = shard * self.size
        last = min(first + self.size, self.layout.documents)
        pages_file = Zstd(f"{self.folder}/pages/{shard:05}.jsonl.zst")
        truth_file = Zstd(f"{self.folder}/truth/{shard:05}.tsv.zst")
        sum_of_bytes, digest = 0, hashlib.sha256()
        for start in range(first, last, 1_000):
            lines, truths = [], []
            for number in range(start, min(start + 1_000, last)):
                page = Page(self.layout, number)
                line = json.dumps({"id": page.key, "text": page.text}, ensure_ascii=False)
                lines.append(line + "\n")
                words = count_words(page.text)
                truths.append(f"{page.key}\t{page.family}\t{page.kind}\t{words}\t{page.changed:.4f}\n")
            block = "".join(lines).encode()
            sum_of_bytes += len(block)
            digest.update(block)
            pages_file.write(block)
            truth_file.write("".join(truths).encode())
        pages_file.close()
        truth_file.close()
        return f"{shard:05}\t{last - first}\t{sum_of_bytes}\t{digest.hexdigest()}\n"


def make_pages(folder, documents, seed, size, processes):
    for name in ("pages", "truth"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    done = {}
    path = f"{folder}/shards.tsv"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            done = {int(line.split("\t")[0]): line for line in file}
    missing = [shard for shard in range(-(-documents // size)) if shard not in done]
    write = Shards(folder, documents, seed, size)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        with open(path, "a", encoding="utf-8") as file:
            for line in pool.imap(write, missing):
                file.write(line)
                file.flush()


def main():
    parser = argparse.ArgumentParser(
        usage="see below", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("count", type=int, nargs="?")
    parser.add_argument("seed_of_edits", type=int, nargs="?", default=1)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.documents is not None:
        make_pages(given.out, given.documents, given.seed, given.shard, given.processes)
    elif given.count is not None:
        edit_real_pages(given.out, given.count, given.seed_of_edits)
    else:
        parser.error("give the number of documents")


if __name__ == "__main__":
    main()
