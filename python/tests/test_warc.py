"""Crawls that warcio has written: the same pages, and places that lead back to them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

import resemblance as rs
from conftest import run_tool, texts

_REASON = "warcio is not installed: its WARC files are not read"
ArchiveIterator = pytest.importorskip("warcio.archiveiterator", reason=_REASON).ArchiveIterator
StatusAndHeaders = pytest.importorskip("warcio.statusandheaders", reason=_REASON).StatusAndHeaders
WARCWriter = pytest.importorskip("warcio.warcwriter", reason=_REASON).WARCWriter

DOCUMENTS = texts(60, seed=22)
URIS = [f"http://example.com/{i}" for i in range(60)]


def _html(text: str) -> bytes:
    return f"<html><head><script>x</script></head><body><p>{text}</p></body></html>".encode()


def _crawl(path: Path, version: str, is_gzip: bool) -> Path:
    """Pages of which every second is compressed, with a request beside each."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=is_gzip, warc_version=version)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "tests"}))
        for number, (uri, text) in enumerate(zip(URIS, DOCUMENTS)):
            fields, body = [("Content-Type", "text/html; charset=utf-8")], _html(text)
            if number % 2:
                fields, body = [*fields, ("Content-Encoding", "gzip")], gzip.compress(body)
            http = StatusAndHeaders("200 OK", fields, protocol="HTTP/1.1")
            response = writer.create_warc_record(uri, "response", io.BytesIO(body), http_headers=http)
            http = StatusAndHeaders("GET / HTTP/1.1", [("Host", "example.com")], is_http_request=True)
            request = writer.create_warc_record(uri, "request", http_headers=http)
            writer.write_request_response_pair(request, response)
    return path


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("name", ["crawl.warc", "crawl.warc.gz"])
def test_crawls_of_warcio(name: str, version: str, schema: rs.Schema, tmp_path: Path, path: Path) -> None:
    crawl = _crawl(tmp_path / name, version, name.endswith(".gz"))
    found = rs.dedup(crawl, schema, key="id")
    expected = rs.dedup(DOCUMENTS, schema)
    assert found.positions.tolist() == expected.positions.tolist()
    assert rs.bulk_build(path, crawl, schema, key="id").documents == len(URIS)
    with rs.Store.open(path) as store:
        assert list(store) == URIS


def test_places_lead_back_to_records_of_warcio(tmp_path: Path) -> None:
    crawl = _crawl(tmp_path / "crawl.warc.gz", "1.1", True)
    run_tool("build", tmp_path / "s.rsm", crawl, "--payload-field", "record", "--quiet")
    stored = crawl.read_bytes()
    with rs.Store.open(tmp_path / "s.rsm") as store:
        for uri, text in zip(URIS, DOCUMENTS):
            place = json.loads(store[uri].payload)
            assert place["file"] == str(crawl)
            member = stored[place["offset"] : place["offset"] + place["length"]]
            record = next(iter(ArchiveIterator(io.BytesIO(member))))
            assert record.rec_headers.get_header("WARC-Target-URI") == uri
            assert record.content_stream().read() == _html(text)
