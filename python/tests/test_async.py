"""Tickets: asyncio does not wait for disks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import resemblance as rs
from conftest import texts


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
