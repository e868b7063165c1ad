"""What the corpus loses with the documents that `dedup` dropped: lost.py CORPUS REPORT... [--spans N]

By brute force, from the texts: for each dropped document the share of its five-word shingles that its
survivor lacks, and the words outside any shingle that the survivor has, or any document that is kept.
`--spans` prints the longest such passage of N documents, those that lose most first. Similarities and
the column `held` of the report are checked.
"""

import argparse

from shared import WORD, documents

# The greatest share of lost shingles in each column of the table.
SHARES = (0.0, 0.01, 0.05, 0.1, 0.2, 1.0)


class Document:
    def __init__(self, text):
        self.text = text
        self.places = [match.span() for match in WORD.finditer(text)]
        words = [text[start:end].lower() for start, end in self.places]
        count = max(1, len(words) - 4) if words else 0
        self.shingles = [tuple(words[first : first + 5]) for first in range(count)]

    def outside(self, known):
        """Returns the runs of words that no known shingle covers, as first and last numbers."""
        covered = [False] * len(self.places)
        for first, shingle in enumerate(self.shingles):
            if shingle in known:
                for number in range(first, min(first + 5, len(covered))):
                    covered[number] = True
        runs = []
        for number, is_covered in enumerate(covered):
            if is_covered:
                continue
            if runs and runs[-1][1] == number - 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        return runs

    def passage(self, run):
        return self.text[self.places[run[0]][0] : self.places[run[1]][1]]


def words_in(runs):
    return sum(last - first + 1 for first, last in runs)


def lost(corpus, report):
    """Prints a row of the table, and returns what each dropped document loses, the greatest first."""
    with open(report, encoding="utf-8") as file:
        header, *lines = file.read().splitlines()
    rows = [dict(zip(header.split("\t"), line.split("\t"))) for line in lines]
    dropped = {row["dropped"] for row in rows}
    kept = {shingle for key, document in corpus.items() if key not in dropped for shingle in document.shingles}
    counts, words, from_survivor, from_all, losses = [0] * len(SHARES), 0, 0, 0, []
    for row in rows:
        document = corpus[row["dropped"]]
        own, other = set(document.shingles), set(corpus[row["survivor"]].shingles)
        share = len(own - other) / len(own)
        assert abs(len(own & other) / len(own | other) - float(row["similarity"])) < 1e-6, row
        assert "held" not in row or abs(1 - share - float(row["held"])) < 1e-6, row
        counts[next(at for at, limit in enumerate(SHARES) if share <= limit)] += 1
        runs = document.outside(other)
        words += len(document.places)
        from_survivor += words_in(runs)
        from_all += words_in(document.outside(kept))
        if runs:
            longest = max(runs, key=lambda run: run[1] - run[0])
            losses.append((share, words_in(runs), row["dropped"], row["survivor"], document.passage(longest)))
    print(report, len(rows), *counts, words, from_survivor, from_all, sep="\t")
    return sorted(losses, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("reports", nargs="+")
    parser.add_argument("--spans", type=int, default=0)
    given = parser.parse_args()
    corpus = {key: Document(text) for key, text in documents(given.corpus)}
    print("report", "dropped", *(f"<={limit}" for limit in SHARES), "words", "not in survivor", "nowhere", sep="\t")
    for report in given.reports:
        for share, words, key, survivor, passage in lost(corpus, report)[: given.spans]:
            print(f"{share:.4f}\t{words}\t{key}\t{survivor}\t{passage!r}")


if __name__ == "__main__":
    main()
