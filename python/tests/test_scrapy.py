"""A crawl by Scrapy on loopback, killed at random: what is lost, and what is doubled."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import resemblance as rs
from conftest import WORDS

pytest.importorskip("scrapy", reason="Scrapy is not installed: the dupe filter is not tested")

PAGES = 240

SPIDER = """
import json, os, sys
import scrapy
from scrapy.crawler import CrawlerProcess

port, delivered = sys.argv[1:]

class Deliver:
    def open_spider(self, spider=None):
        self.file = open(delivered, "a")
    def process_item(self, item, spider=None):
        self.file.write(json.dumps(item) + "\\n")
        self.file.flush()
        return item

class Site(scrapy.Spider):
    name = "site"
    start_urls = [f"http://127.0.0.1:{port}/0"]
    def parse(self, response):
        yield {"url": response.url, "text": response.css("p::text").get()}
        yield from response.follow_all(css="a")

process = CrawlerProcess({
    "DUPEFILTER_CLASS": "resemblance.scrapy.DupeFilter",
    "RESEMBLANCE_REQUESTS": "requests.rsm",
    "ITEM_PIPELINES": {"resemblance.scrapy.NearDuplicates": 100, Deliver: 200},
    "RESEMBLANCE_PAGES": "pages.rsm",
    "RESEMBLANCE_COMMIT_INTERVAL": 0.2,
    "CONCURRENT_REQUESTS": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": False,
})
process.crawl(Site)
process.start()
"""


class Site:
    """Pages that link to later and earlier ones. Every third page is like another one, some redirect, and
    some fail at first."""

    def __init__(self) -> None:
        chance = random.Random(49)
        self.texts = [" ".join(chance.choices(WORDS, k=120)) for _ in range(PAGES)]
        for page in range(3, PAGES, 3):
            self.texts[page] = self.texts[chance.randrange(page)] + " printed"
        self.fetched: Counter[str] = Counter()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path
        self.fetched[path] += 1
        time.sleep(0.01)
        page = int(path.strip("/m"))
        if page % 20 == 7 and self.fetched[path] == 1:
            request.send_error(503)
        elif page % 10 == 4 and not path.startswith("/m"):
            request.send_response(301)
            request.send_header("Location", f"/m{page}")
            request.end_headers()
        else:
            links = [(2 * page + 1), (2 * page + 2), page // 2, (page * 7 + 3) % PAGES]
            body = "".join(f'<a href="/{link}">x</a>' for link in links if link < PAGES)
            request.send_response(200)
            request.send_header("Content-Type", "text/html")
            request.end_headers()
            request.wfile.write(f"<html><body><p>{self.texts[page]}</p>{body}</body></html>".encode())


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()


def _start(site: Site, folder: Path) -> subprocess.Popen[bytes]:
    program = folder / "spider.py"
    program.write_text(SPIDER)
    arguments = [str(site.server.server_port), str(folder / "delivered.jsonl")]
    return subprocess.Popen([sys.executable, str(program), *arguments], cwd=folder)


def _delivered(folder: Path) -> list[dict[str, str]]:
    # A kill may cut the last line of a run: it is no item.
    lines = (folder / "delivered.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _expected_paths() -> set[str]:
    paths = {f"/{page}" for page in range(PAGES)}
    return paths | {f"/m{page}" for page in range(PAGES) if page % 10 == 4}


def _groups(folder: Path, site: Site) -> tuple[set[int], int]:
    """The texts of which no item was delivered, and the number of items beyond the first of each."""
    schema = rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash())
    clusters = rs.clusters(site.texts, schema)
    group_of = {page: min(cluster) for cluster in clusters for page in cluster}
    pages = [int(item["url"].rpartition("/")[2].strip("m")) for item in _delivered(folder)]
    found = Counter(group_of.get(page, page) for page in pages)
    groups = {group_of.get(page, page) for page in range(PAGES)}
    return groups - found.keys(), sum(found.values()) - len(found)


def test_a_crawl_that_is_killed_loses_nothing(site: Site, tmp_path: Path) -> None:
    chance = random.Random(50)
    kills = 0
    for _ in range(8):
        before = site.fetched.total()
        spider = _start(site, tmp_path)
        goal = before + chance.randrange(5, 60)
        while site.fetched.total() < goal and spider.poll() is None:
            time.sleep(0.005)
        kills += spider.poll() is None
        spider.kill()
        spider.wait()
    assert kills >= 4
    assert _start(site, tmp_path).wait() == 0
    lost, doubled = _groups(tmp_path, site)
    assert not lost
    assert site.fetched.keys() == _expected_paths()
    # The start page is requested by each run, and by the link to it; a page that fails is tried again.
    retried = sum(site.fetched[f"/{page}"] > 1 for page in range(7, PAGES, 20))
    again = site.fetched.total() - len(site.fetched) - (site.fetched["/0"] - 1) - retried
    print(f"{kills} kills: {again} pages were requested again, {doubled} items delivered again")
    # What the last interval has seen, and what was in progress.
    assert 0 < again <= kills * 60
    assert doubled <= kills * 60
    # A run after one that has ended makes no request but the first one.
    ended, items = Counter(site.fetched), len(_delivered(tmp_path))
    assert _start(site, tmp_path).wait() == 0
    assert site.fetched - ended == Counter({"/0": 1})
    assert len(_delivered(tmp_path)) == items


def test_a_crawl_without_a_break_requests_and_delivers_once(site: Site, tmp_path: Path) -> None:
    assert _start(site, tmp_path).wait() == 0
    retried = {f"/{page}" for page in range(7, PAGES, 20)} | {"/0"}
    assert site.fetched == {path: 1 + (path in retried) for path in _expected_paths()}
    assert _groups(tmp_path, site) == (set(), 0)
    for name in ("requests.rsm", "pages.rsm"):
        assert rs.check(tmp_path / name)
