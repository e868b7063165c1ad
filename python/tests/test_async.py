"""Tickets: asyncio does not wait for disks."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import resemblance as rs
from conftest import in_time, texts


def test_tasks_insert_and_the_loop_runs_on(path: Path, schema: rs.Schema) -> None:
    documents = texts(500, seed=11)

    async def main(store: rs.Store) -> tuple[list[rs.Novelty], int]:
        ticks = 0
        done = False

        async def tick() -> None:
            nonlocal ticks
            while not done:
                ticks += 1
                await asyncio.sleep(0)

        ticker = asyncio.create_task(tick())
        answers = await asyncio.gather(
            *(store.insert_if_new_async(f"k{i}", text) for i, text in enumerate(documents))
        )
        done = True
        await ticker
        return list(answers), ticks

    with rs.Store.create(path, schema) as store:
        answers, ticks = asyncio.run(main(store))
        assert ticks > 1
        assert sum(map(bool, answers)) == len(store)
        for text, answer in zip(documents, answers):
            # It is there, or something like it is.
            similarity = answer.found.similarity if answer.found is not None else None
            assert answer or (similarity is not None and similarity >= 0.7)
            assert store.query(text, limit=1)
    with rs.Store.open(path) as store:
        assert len(store) == sum(map(bool, answers))


def test_errors_come_out(path: Path, schema: rs.Schema) -> None:
    async def main(store: rs.Store) -> None:
        try:
            await store.insert_if_new_async("k" * 5_000, "some text")
        except rs.InvalidParameterError as error:
            assert error.parameter == "key"
        else:
            raise AssertionError("the key is too long")

    with rs.Store.create(path, schema) as store:
        asyncio.run(main(store))


FORGOTTEN = """
import sys
import resemblance as rs
texts = [" ".join(f"w{n * k % 97}" for k in range(30)) for n in range(1, 60)]
for round in range(20):
    store = rs.Store.open(sys.argv[1])
    tickets = [store.queue_insert_if_new(f"{round}/{n}", text) for n, text in enumerate(texts)]
    for ticket in tickets:
        ticket.on_ready(lambda: None)
    del store
"""


def test_a_store_that_is_forgotten_makes_what_was_queued(path: Path, schema: rs.Schema) -> None:
    rs.Store.create(path, schema).close()
    subprocess.run([sys.executable, "-c", FORGOTTEN, str(path)], check=True, timeout=120)
    with rs.Store.open(path) as store:
        assert len(store) > 30


def test_tickets_without_a_loop(path: Path, schema: rs.Schema) -> None:
    with rs.Store.create(path, schema) as store:
        tickets = [store.queue_insert_if_new(f"k{i}", text) for i, text in enumerate(texts(50))]
        assert sum(bool(ticket.wait()) for ticket in tickets) == len(store)


def test_all_who_wait_for_a_ticket_are_woken(path: Path, schema: rs.Schema) -> None:
    with rs.Store.create(path, schema, group_wait=0.5) as store:
        ticket = store.queue_insert_if_new("a", "some text")
        called: list[str] = []
        assert not any(ticket.on_ready(partial(called.append, name)) for name in "xy")
        novelties: list[rs.Novelty] = []
        threads = [
            threading.Thread(target=lambda: novelties.append(ticket.wait()), daemon=True) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert [bool(novelty) for novelty in novelties] == [True] * 3
        assert ticket.on_ready(lambda: None) and ticket.result() == ticket.result() == ticket.wait()
        _until(lambda: called == ["x", "y"])


def test_a_callable_of_a_ticket_may_use_the_answer_and_the_store(
    path: Path, schema: rs.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: raised.append(found.exc_value))
    with rs.Store.create(path, schema, group_wait=0.3) as store:
        first = store.queue_insert_if_new("a", "some text")
        done: list[object] = []

        def use() -> None:
            done.append(first.result().is_new)
            store.insert("b", "another text of words")
            done.append(store.queue_insert_if_new("c", "a third one for all").wait().is_new)
            raise ZeroDivisionError

        assert not first.on_ready(use)
        _until(lambda: bool(raised))
        assert done == [True, True] and isinstance(raised[0], ZeroDivisionError)
        assert in_time(lambda: store.insert("d", "text of another thread")) == 3
        with pytest.raises(RuntimeError, match="no answer yet"):
            store.queue_insert_if_new("e", "some text").result()


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_queued_change_does_not_wait_for_a_transaction_of_its_thread(schema: rs.Schema) -> None:
    store = rs.Store.in_memory(schema)

    async def main() -> None:
        with store.transaction() as transaction:
            transaction.insert("a", "some text")
            with pytest.raises(rs.BusyError):
                await store.insert_if_new_async("b", "another text of words")
            with pytest.raises(rs.BusyError):
                await store.set_position_async("offset", b"1")
            with pytest.raises(rs.BusyError):
                store.queue_insert_if_new("b", "another text of words")
            with pytest.raises(rs.BusyError):
                store.queue_set_position("offset", b"1")
            ticket = in_time(lambda: store.queue_insert_if_new("c", "a third one for all"))
            with pytest.raises(rs.BusyError):
                ticket.wait()
        assert ticket.wait()

    in_time(lambda: asyncio.run(main()))
    assert list(store) == ["a", "c"]


def test_positions_follow_what_was_queued_before_them(path: Path, schema: rs.Schema) -> None:
    documents = texts(200, seed=12)

    async def main(store: rs.Store) -> None:
        inserts = [store.insert_if_new_async(f"k{i}", text) for i, text in enumerate(documents)]
        tasks = [asyncio.ensure_future(insert) for insert in inserts]
        await store.set_position_async("pages-0", b"199")
        # The position is durable, and so is what was queued before it.
        with rs.Store.open(path, read_only=True) as other:
            assert other.position("pages-0") == b"199"
            assert all(f"k{i}" in other or other.query(text, limit=1) for i, text in enumerate(documents))
        await asyncio.gather(*tasks)
        await store.set_position_async("pages-0", None)

    with rs.Store.create(path, schema) as store:
        asyncio.run(main(store))
        assert store.position("pages-0") is None
        assert store.queue_set_position("pages-0", b"1").wait() is None
        assert store.position("pages-0") == b"1"


class _FullStore:
    """A store whose queue is full at first."""

    def __init__(self) -> None:
        self.refusals = 3
        self.queued: list[str] = []

    def queue_insert_if_new(self, key: str, *_: object, **__: object) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise rs.QueueFullError("the write queue is full")
        return self._take(key)

    def queue_set_position(self, name: str, _: object) -> Any:
        return self._take(name)

    def _take(self, name: str) -> Any:
        self.queued.append(name)
        return self

    def on_ready(self, _: object) -> bool:
        return True

    def wait(self) -> None:
        return None


def test_a_position_does_not_overtake_a_document_that_waits_for_room() -> None:
    from resemblance import _async

    async def main(store: Any) -> None:
        inserts = [_async.insert_if_new(store, key, "text", None, 0) for key in ("a", "b")]
        await asyncio.gather(*inserts, _async.set_position(store, "position", b"1"))

    for _ in range(2):  # In a loop after another one.
        store = _FullStore()
        asyncio.run(main(store))
        store.refusals = 3
        asyncio.run(main(store))
        assert store.queued == ["a", "b", "position"] * 2


CONSUMER = """
import asyncio, sys
import resemblance as rs
from conftest import texts

async def main(store):
    documents = texts(2_000, seed=13)
    start = int(store.position("pages-0") or -1) + 1
    print("begun", flush=True)
    for n in range(start, 1_000_000):
        document = store.insert_if_new_async(f"k{n}", documents[n % 2_000])
        tasks = [asyncio.ensure_future(document)]
        if n % 8 == 7:
            position = store.set_position_async("pages-0", str(n).encode())
            tasks.append(asyncio.ensure_future(position))
        await asyncio.wait(tasks, timeout=0.001)

with rs.Store.open(sys.argv[1]) as store:
    asyncio.run(main(store))
"""


def test_a_consumer_that_is_killed_has_all_documents_before_its_position(path: Path, schema: rs.Schema) -> None:
    chance, documents, position = random.Random(6), texts(2_000, seed=13), -1
    rs.Store.create(path, schema).close()
    for _ in range(6):
        before, command = position, [sys.executable, "-c", CONSUMER, str(path)]
        consumer = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE)
        assert consumer.stdout is not None and consumer.stdout.readline() == b"begun\n"
        time.sleep(0.1 + chance.random() * 0.2)
        consumer.kill()
        consumer.wait()
        consumer.stdout.close()
        with rs.Store.open(path) as store:
            position = int(store.position("pages-0") or -1)
            for n in range(before + 1, position + 1):
                assert f"k{n}" in store or store.query(documents[n % 2_000], limit=1)
    assert position > 100
