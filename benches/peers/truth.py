"""All pairs of a corpus whose Jaccard similarity by five words is 0.8 or more: truth.py CORPUS OUT

An exact join that shares nothing with resemblance: two sets can only be so similar if they share one of
their rarest shingles (prefix filter); those that do are compared as sets of strings.
"""

import math
import sys
from collections import Counter, defaultdict

from shared import THRESHOLD, documents, shingles


def truth(path):
    numbers, ids, sets = {}, [], []
    counts = Counter()
    for id, text in documents(path):
        features = [numbers.setdefault(shingle, len(numbers)) for shingle in shingles(text)]
        counts.update(features)
        ids.append(id)
        sets.append(frozenset(features))
    del numbers
    posted = defaultdict(list)
    for index, features in enumerate(sets):
        size = len(features)
        prefix = size - math.ceil(THRESHOLD * size - 1e-9) + 1
        rarest = sorted(features, key=lambda feature: (counts[feature], feature))[:prefix]
        candidates = set()
        for feature in rarest:
            if counts[feature] > 1:
                candidates.update(posted[feature])
                posted[feature].append(index)
        for other in candidates:
            shared = len(features & sets[other])
            # In integers: shared / (a + b - shared) >= 4 / 5.
            if 9 * shared >= 4 * (size + len(sets[other])):
                yield ids[other], ids[index]


def main():
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        for pair in truth(sys.argv[1]):
            out.write("\t".join(sorted(pair)) + "\n")


if __name__ == "__main__":
    main()
