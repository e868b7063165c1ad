"""Queued writes for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from .errors import QueueFullError

if TYPE_CHECKING:
    from ._native import Novelty, Signature, Store, Ticket

_Answer = TypeVar("_Answer")

# So long a task waits for room in a queue that is full.
_PAUSE_SECONDS = 0.002
# Tasks queue their changes in the order in which they begin. Without turns, a position could be queued
# before a document that waits for room.
_turns: WeakKeyDictionary[Store, dict[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()


def _turn(store: Store, loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
    turns = _turns.setdefault(store, {})
    if loop not in turns:
        for closed in [other for other in turns if other.is_closed()]:
            turns.pop(closed, None)
    return turns.setdefault(loop, asyncio.Lock())


async def _answer(store: Store, queue: Callable[[], Ticket[_Answer]]) -> _Answer:
    """Queues a change after waiting for its turn and for room, then waits for the answer."""
    loop = asyncio.get_running_loop()
    async with _turn(store, loop):
        while True:
            try:
                ticket = queue()
                break
            except QueueFullError:
                await asyncio.sleep(_PAUSE_SECONDS)
    answered = loop.create_future()

    def answer() -> None:
        if not answered.done():
            answered.set_result(None)

    def wake() -> None:
        # If the loop is closed, no task waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(answer)

    if not ticket.on_ready(wake):
        await answered
    # The answer is there: this does not wait.
    return ticket.wait()


async def insert_if_new(
    store: Store,
    key: str | bytes | None,
    document: str | Signature,
    payload: bytes | None,
    stamp: int,
) -> Novelty:
    queue = partial(store.queue_insert_if_new, key, document, payload=payload or b"", stamp=stamp)
    return await _answer(store, queue)


async def set_position(store: Store, name: str, position: bytes | None) -> None:
    # All tasks that exist begin meanwhile: a call that is awaited at once would run before them.
    await asyncio.sleep(0)
    await _answer(store, partial(store.queue_set_position, name, position))
