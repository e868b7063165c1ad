"""Corpora in a bucket: the tool reads them as it reads the same local files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import run_tool, texts

moto = pytest.importorskip("moto.server", reason="moto is not installed")
boto3 = pytest.importorskip("boto3", reason="moto is not installed")


def _environment(endpoint: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return kept | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture
def endpoint() -> Iterator[str]:
    server: Any = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def _dedup(endpoint: str, *arguments: str | Path) -> None:
    run_tool("dedup", *arguments, environment=_environment(endpoint))


def test_a_bucket_is_read_as_the_same_local_files(endpoint: str, tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": number, "text": text}) + "\n"
        for number, text in enumerate(texts(300, seed=7))
    ]
    folder = tmp_path / "crawl"
    folder.mkdir()
    (folder / "1.jsonl").write_text("".join(lines[:150]))
    (folder / "2.jsonl.gz").write_bytes(gzip.compress("".join(lines[150:]).encode()))
    (folder / "3.jsonl").touch()
    client: Any = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="bucket")
    for path in folder.iterdir():
        client.put_object(Bucket="bucket", Key=f"crawl/{path.name}", Body=path.read_bytes())
    _dedup(endpoint, folder, "-o", tmp_path / "local.jsonl")
    _dedup(endpoint, "s3://bucket/crawl/", "-o", tmp_path / "below.jsonl")
    _dedup(endpoint, "s3://bucket/crawl/*", "-o", tmp_path / "matching.jsonl")
    local = (tmp_path / "local.jsonl").read_bytes()
    assert 0 < len(local) < sum(map(len, lines))
    assert (tmp_path / "below.jsonl").read_bytes() == local
    assert (tmp_path / "matching.jsonl").read_bytes() == local
