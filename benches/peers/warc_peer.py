#!/usr/bin/env python3
"""A crawl without its near-duplicate pages, beside warcio, html.parser and datasketch.

    benches/peers/warc_peer.py make CRAWL.warc.gz PAGES     # 30 % near-duplicates, unlike or nearly equal
    benches/peers/warc_peer.py compare CRAWL.warc.gz TOOL   # both keep the same pages, or it fails
    benches/peers/warc_peer.py dedup CRAWL.warc.gz OUT      # warcio, html.parser and datasketch alone
"""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from html.parser import HTMLParser

from datasketch import MinHash, MinHashLSH
from shared import BANDS, ROWS, THRESHOLD, VALUES, shingles
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

LETTERS = "bcdfghklmnprstvw"
WORDS = [f"{a}{e}{b}{i}{c}" for a in LETTERS for e in "aeiou" for b in LETTERS for i in "aeiou" for c in LETTERS[:4]]
FRAME = "<html><head><title>{0}</title><style>p {{ margin: 0 }}</style><script>{1}</script></head><body>{2}</body></html>"


def make(crawl, pages):
    """Near-duplicates differ in two of at least 300 words, so that no estimate decides about them."""
    chance, texts = random.Random(1), []
    with open(crawl, "wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number in range(int(pages)):
            if texts and chance.random() < 0.3:
                words = list(chance.choice(texts))
                for _ in range(2):
                    words[chance.randrange(len(words))] = chance.choice(WORDS)
            else:
                words = chance.choices(WORDS, k=chance.randrange(300, 600))
                texts = [*texts[-999:], words]
            parts = [words[at : at + 40] for at in range(0, len(words), 40)]
            blocks = "".join(f'<div class="part n{at}"><p>{" ".join(part)}</p></div>\n' for at, part in enumerate(parts))
            body = FRAME.format(" ".join(words[:5]), "var x = 1; " * 100, blocks).encode()
            http = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
            uri = f"http://example.com/{number}"
            writer.write_record(writer.create_warc_record(uri, "response", io.BytesIO(body), http_headers=http))


class Shown(HTMLParser):
    """The text of a page without scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.parts, self.skipped = [], 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, _):
        self.skipped += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.skipped -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.skipped:
            self.parts.append(data)


def pages(crawl):
    """The URI and HTML of each page."""
    with open(crawl, "rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "response" and record.http_headers.get_statuscode() == "200":
                yield record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


def dedup(crawl, out):
    lsh, known = MinHashLSH(num_perm=VALUES, params=(BANDS, ROWS)), {}
    for uri, body in pages(crawl):
        sketch = MinHash(num_perm=VALUES)
        sketch.update_batch([shingle.encode() for shingle in shingles("\n".join(Shown(body.decode()).parts))])
        if not any(known[id].jaccard(sketch) >= THRESHOLD for id in lsh.query(sketch)):
            lsh.insert(uri, sketch)
            known[uri] = sketch
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(f"{uri}\n" for uri in known)


def timed(command):
    """The seconds by the clock and of the processor that a command takes."""
    began, before = time.monotonic(), os.times()
    subprocess.run(command, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, used


def compare(crawl, tool):
    sizes = [len(body) for _, body in pages(crawl)]
    megabytes = sum(sizes) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        peer_out, own_out = os.path.join(folder, "peer.txt"), os.path.join(folder, "own.jsonl")
        peer = timed([sys.executable, __file__, "dedup", crawl, peer_out])
        options = ["--words", "5", "--threshold", str(THRESHOLD), "--verify", "estimate", "--quiet"]
        own = timed([tool, "dedup", crawl, "-o", own_out, *options])
        with open(peer_out, encoding="utf-8") as file:
            expected = [line.strip() for line in file]
        with open(own_out, encoding="utf-8") as file:
            found = [json.loads(line)["id"] for line in file]
    assert found == expected, f"{len(found)} pages are kept, and {len(expected)} by the peer"
    print(f"{len(sizes)} pages, {len(found)} kept by both, {megabytes:.1f} MB of HTML")
    for name, (seconds, used) in [("resemblance", own), ("warcio, html.parser, datasketch", peer)]:
        print(f"{name}: {seconds:.2f} s, {used:.2f} s of the processor, {megabytes / used:.2f} MB a second and core")


globals()[sys.argv[1]](*sys.argv[2:])
