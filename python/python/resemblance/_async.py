"""Queued writes for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .errors import QueueFullError

if TYPE_CHECKING:
    from ._native import Novelty, Signature, Store, Ticket

# So long a task waits for room in a queue that is full.
_PAUSE_SECONDS = 0.002


async def insert_if_new(
    store: Store,
    key: str | bytes | None,
    document: str | Signature,
    payload: bytes | None,
    stamp: int,
) -> Novelty:
    """Queues the document after waiting for room if necessary, then waits for the answer."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            ticket: Ticket = store.queue_insert_if_new(
                key, document, payload=payload or b"", stamp=stamp
            )
            break
        except QueueFullError:
            await asyncio.sleep(_PAUSE_SECONDS)
    answered = loop.create_future()

    def answer() -> None:
        if not answered.done():
            answered.set_result(None)

    if not ticket.on_ready(lambda: loop.call_soon_threadsafe(answer)):
        await answered
    # The answer is there: this does not wait.
    return ticket.wait()
