"""Crawls that warcio has written: the same pages, and places that lead back to them."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

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


class _Member(NamedTuple):
    type: str
    uri: str | None
    headers: dict[str, str]
    http: list[tuple[str, str]]
    stored: bytes


def _members(path: Path) -> list[_Member]:
    """The records of a file as warcio reads them, which checks their digests, and their stored bytes."""
    found: list[_Member] = []
    stored = path.read_bytes()
    with path.open("rb") as file:
        archive = ArchiveIterator(file, check_digests="raise")
        for record in archive:
            headers = dict(record.rec_headers.headers)
            http = [] if record.http_headers is None else list(record.http_headers.headers)
            record.content_stream().read()
            offset = archive.get_record_offset()
            found.append(_Member(record.rec_type, headers.get("WARC-Target-URI"), headers, http, stored[offset:]))
    # warcio counts no line ends after a record.
    rests = [*(member.stored for member in found[1:]), b""]
    return [member._replace(stored=member.stored.removesuffix(rest)) for member, rest in zip(found, rests)]


@pytest.mark.parametrize("name", ["crawl.warc", "crawl.warc.gz"])
def test_copies_lack_dropped_pages_and_their_requests(name: str, tmp_path: Path) -> None:
    crawl = _crawl(tmp_path / name, "1.1", name.endswith(".gz"))
    paths = {option: tmp_path / option for option in ("kept", "dropped", "replaced")}
    report = tmp_path / "report.tsv"
    run_tool(
        "dedup", crawl, "--words", "2", "-o", f"{paths['kept']}/", "--dropped", f"{paths['dropped']}/", "--report", report
    )
    run_tool("dedup", crawl, "--words", "2", "-o", f"{paths['replaced']}/", "--revisit")
    rows = [line.split("\t") for line in report.read_text().splitlines()[1:]]
    survivors = {row[0]: row[1] for row in rows}
    assert 5 < len(survivors) < 50
    every = _members(crawl)
    kept = [member for member in every if member.uri not in survivors]
    dropped = [member for member in every if member.uri in survivors or member.type == "warcinfo"]
    assert _members(paths["kept"] / name) == kept
    assert (paths["kept"] / name).read_bytes() == b"".join(member.stored for member in kept)
    assert _members(paths["dropped"] / name) == dropped

    responses = {member.uri: member for member in every if member.type == "response"}
    same = 0
    replaced = _members(paths["replaced"] / name)
    assert len(replaced) == len(every)
    for original, member in zip(every, replaced):
        if original.type != "response" or original.uri not in survivors:
            assert member == original
            continue
        survivor = responses[survivors[original.uri]]
        expected = {
            "WARC-Type": "revisit",
            "WARC-Target-URI": original.uri,
            "WARC-Date": original.headers["WARC-Date"],
            "WARC-Concurrent-To": original.headers["WARC-Record-ID"],
            "WARC-Refers-To": survivor.headers["WARC-Record-ID"],
            "WARC-Refers-To-Target-URI": survivor.uri,
            "WARC-Refers-To-Date": survivor.headers["WARC-Date"],
        }
        assert {field: member.headers[field] for field in expected} == expected
        if original.headers["WARC-Payload-Digest"] == survivor.headers["WARC-Payload-Digest"]:
            same += 1
            assert member.headers["WARC-Payload-Digest"] == original.headers["WARC-Payload-Digest"]
            assert member.headers["WARC-Profile"].endswith("/warc/1.1/revisit/identical-payload-digest")
            assert member.headers["WARC-Truncated"] == "length"
            assert member.http == original.http
        else:
            assert member.headers["WARC-Profile"] == "urn:x-resemblance:revisit:near-duplicate:1"
            assert member.headers["Content-Length"] == "0" and "WARC-Payload-Digest" not in member.headers
    assert 0 < same < len(survivors)


def test_pywb_replays_survivors(tmp_path: Path) -> None:
    programs = [shutil.which(name) for name in ("wb-manager", "wayback")]
    if not all(programs):
        pytest.skip("pywb is not installed: nothing is replayed")
    manager, wayback = map(str, programs)
    crawl = _crawl(tmp_path / "crawl.warc.gz", "1.1", True)
    run_tool("dedup", crawl, "--words", "2", "-o", f"{tmp_path / 'kept'}/", "--revisit")
    for arguments in (["init", "c"], ["add", "c", str(tmp_path / "kept" / crawl.name)]):
        subprocess.run([manager, *arguments], cwd=tmp_path, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    replay = subprocess.Popen([wayback, "-b", "127.0.0.1", "-p", str(port)], cwd=tmp_path)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        for _ in range(600):
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.1)
        profiles = set()
        for member in _members(tmp_path / "kept" / crawl.name):
            if member.type == "revisit":
                with opener.open(f"http://127.0.0.1:{port}/c/2030id_/{member.uri}", timeout=60) as shown:
                    survivor = URIS.index(member.headers["WARC-Refers-To-Target-URI"])
                    assert shown.read() == _html(DOCUMENTS[survivor])
                profiles.add(member.headers["WARC-Profile"])
        assert len(profiles) == 2
    finally:
        replay.kill()
        replay.wait()


def test_schemas_for_html_read_pages_once(tmp_path: Path, path: Path) -> None:
    shown = "if a < b and b > c then <b> &amp; others are\nmarkup " + DOCUMENTS[0]
    crawl = tmp_path / "crawl.warc"
    with crawl.open("wb") as file:
        writer = WARCWriter(file, gzip=False)
        for uri, media, body in [
            ("u:html", "text/html", "<p>" + shown.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")),
            ("u:plain", "text/plain", shown),
        ]:
            http = StatusAndHeaders("200 OK", [("Content-Type", media)], protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(uri, "response", io.BytesIO(body.encode()), http_headers=http))
    assert dict(rs.read_files(crawl)) == {"u:html": shown, "u:plain": shown}
    plain = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7))
    html = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7), html=True)
    assert html.extract(dict(rs.read_files(crawl, html=True))["u:html"]) == shown
    made = rs.bulk_build(path, crawl, html)
    assert made.documents == 2
    with rs.Store.open(path) as store:
        for uri in ("u:html", "u:plain"):
            page = "<p>" + shown.replace("&", "&amp;").replace("<", "&lt;")
            assert store[uri].signature == html.sketch(page)
    assert len(rs.dedup(crawl, html).positions) == len(rs.dedup(crawl, plain).positions) == 1


_JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"
_FRENCH = "Là où l'été brûle, ça coûte cher à l'œil, même à crédit, où qu'on aille après avoir dîné."


def _served() -> dict[str, tuple[str, str, bytes]]:
    """By path the media type, the coding and the body."""
    brotli = pytest.importorskip("brotli", reason="brotli is not installed: pages are not compressed with it")
    page = "<html><head>{}</head><body><p>{}</p></body></html>"
    japanese, french = page.format("", _JAPANESE), page.format("", _FRENCH)
    declared = page.format("<meta charset=shift_jis>", _JAPANESE)
    return {
        "/windows": ("text/html; charset=windows-1252", "", french.encode("cp1252")),
        "/shift": ("text/html; charset=shift_jis", "", japanese.encode("shift_jis")),
        "/meta": ("text/html", "", declared.encode("shift_jis")),
        "/utf16": ("text/html", "", japanese.encode("utf-16")),
        "/none": ("text/html", "", french.encode()),
        "/guessed": ("text/html", "", japanese.encode("shift_jis")),
        "/gzip": ("text/html; charset=utf-8", "gzip", gzip.compress(french.encode())),
        "/br": ("text/html; charset=utf-8", "br", brotli.compress(japanese.encode())),
        "/chunked": ("text/html; charset=utf-8", "chunked", french.encode()),
        "/chunked-gzip": ("text/html; charset=utf-8", "gzip, chunked", gzip.compress(japanese.encode())),
    }


def test_crawls_of_wget(tmp_path: Path) -> None:
    wget = shutil.which("wget")
    if wget is None:
        pytest.skip("wget is not installed: its WARC files are not read")
    pages = _served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            media, coding, body = pages[self.path]
            encoding = coding.replace(", ", "").replace("chunked", "")
            self.send_response(200)
            self.send_header("Content-Type", media)
            if encoding:
                self.send_header("Content-Encoding", encoding)
            if "chunked" in coding:
                self.send_header("Transfer-Encoding", "chunked")
                pieces = [body[at : at + 50] for at in range(0, len(body), 50)]
                body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_address[1]}"
    command = [wget, "-q", "--no-proxy", "--warc-file=crawl", "-O", "all", *(root + path for path in pages)]
    subprocess.run(command, cwd=tmp_path, check=True)
    server.shutdown()
    server.server_close()
    crawl = tmp_path / "crawl.warc.gz"
    found = {key.removeprefix(root): text for key, text in rs.read_files(crawl)}
    is_japanese = {"/shift", "/meta", "/utf16", "/guessed", "/br", "/chunked-gzip"}
    assert found == {path: _JAPANESE if path in is_japanese else _FRENCH for path in pages}
    # wget writes a request before its response, which names it. Near-duplicates are dropped with their requests.
    run_tool("dedup", crawl, "-o", f"{tmp_path / 'kept'}/", "--chars", "5")
    members = _members(tmp_path / "kept" / crawl.name)
    uris = sorted(member.uri.strip("<>").removeprefix(root) for member in members if member.uri and root in member.uri)
    assert uris == ["/shift", "/shift", "/windows", "/windows"]
