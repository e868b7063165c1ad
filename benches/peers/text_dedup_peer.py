"""text-dedup: dedup CORPUS OUT STATE. Its own command, then its Arrow files as JSON Lines.

It splits at every character that is no letter, digit or underscore, so that two of them in a row make an
empty word.
"""

import shutil
import subprocess
import sys

from shared import BANDS, ROWS, THRESHOLD, VALUES, write_kept


def dedup(corpus, out, state):
    # fmt: off
    command = [
        sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", corpus,
        "--split", "train", "--column", "text", "--cache_dir", f"{state}/cache",
        "--output", f"{state}/out", "--ngram", "5", "--num_perm", VALUES, "--b", BANDS, "--r", ROWS,
        "--threshold", THRESHOLD, "--hash_func", "xxh3", "--hash_bits", "32", "--min_length", "1",
    ]
    # fmt: on
    subprocess.run([str(part) for part in command], check=True)
    from datasets import load_from_disk

    write_kept(corpus, out, set(load_from_disk(f"{state}/out")["id"]))
    shutil.rmtree(state)


globals()[sys.argv[1]](*sys.argv[2:])
