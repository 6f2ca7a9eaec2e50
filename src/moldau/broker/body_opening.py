"""Looking inside batches without keeping the loop: small ones on the spot, others in a thread.

What is found out there is `broker.batch_bodies` and `broker.schema_rules`. Questions to a schema registry, which may be
slow or gone, have a thread of their own, so that batches which raise none never wait for it. Start at
`BodyOpening.open`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from moldau.broker.batch_rules import RefusedBatchError
from moldau.broker.produce_item import ProduceItem
from moldau.broker.schema_rules import SchemaClaims, SchemaIds, look_up, settle, verdict
from moldau.core.errors import MoldauError
from moldau.protocol.record_batch import CODEC_MASK, HEADER

__all__ = ["BodyOpening", "Refusals"]

INLINE_BODY_BYTES = 8 * 1024
"""Uncompressed bodies up to this size are opened on the spot: a thread would cost more."""

BODY_THREADS = 2

Refusals: TypeAlias = list[tuple[ProduceItem, MoldauError]]


class BodyOpening:
    """One per broker; called on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, schema_ids: SchemaIds) -> None:
        self._loop = loop
        self._schema_ids = schema_ids
        self._body_threads: ThreadPoolExecutor | None = None
        self._question_thread: ThreadPoolExecutor | None = None
        self._under_way: set[asyncio.Task[Refusals]] = set()

    def open(
        self, items: Sequence[ProduceItem], now_ms: int, later: Callable[[asyncio.Task[Refusals]], None]
    ) -> Refusals | None:
        """Open what has to be, and tell which items are refused; `None` if that takes a while, and `later` is told.

        Items that wait have bytes of their own from then on, since a frame is only lent.
        """
        if any(_wants_thread(item) for item in items):
            self._begin(self._open_in_thread(_kept(items), now_ms), later)
            return None
        refused = _open_all(items, now_ms, self._schema_ids)
        if any(item.claims for item in items):
            self._begin(self._ask_too(_kept(items), refused), later)
            return None
        return refused

    def _begin(self, opening: Coroutine[Any, Any, Refusals], later: Callable[[asyncio.Task[Refusals]], None]) -> None:
        task = self._loop.create_task(opening)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(later)

    async def _open_in_thread(self, items: Sequence[ProduceItem], now_ms: int) -> Refusals:
        if self._body_threads is None:
            self._body_threads = ThreadPoolExecutor(BODY_THREADS, "moldau-batch-bodies")
        refused = await self._loop.run_in_executor(self._body_threads, _open_all, items, now_ms, self._schema_ids)
        return await self._ask_too(items, refused)

    async def _ask_too(self, items: Sequence[ProduceItem], refused: Refusals) -> Refusals:
        asking = [item for item in items if item.claims]
        if not asking:
            return refused
        if self._question_thread is None:
            self._question_thread = ThreadPoolExecutor(1, "moldau-schema-ids")
        return refused + await self._loop.run_in_executor(self._question_thread, _settle_all, asking, self._schema_ids)

    def close(self) -> None:
        for threads in (self._body_threads, self._question_thread):
            if threads is not None:
                threads.shutdown(wait=True)


def _wants_thread(item: ProduceItem) -> bool:
    if not item.is_body_wanted or item.topic is None:
        return False
    is_compressed = item.header[5] & CODEC_MASK or item.topic.rules.codec
    return bool(is_compressed) or len(item.batch) > INLINE_BODY_BYTES


def _kept(items: Sequence[ProduceItem]) -> Sequence[ProduceItem]:
    for item in items:
        if isinstance(item.batch, memoryview):
            item.batch = bytearray(item.batch)
    return items


def _open_all(items: Sequence[ProduceItem], now_ms: int, schema_ids: SchemaIds) -> Refusals:
    """Open each body that has to be, replace batches that were packed anew, and tell which were refused."""
    # Imported here: codecs bring their libraries, which most brokers never need.
    from moldau.broker.batch_bodies import opened

    refused: Refusals = []
    for item in items:
        if not item.is_body_wanted or item.topic is None:
            continue
        try:
            batch = bytearray(item.batch)
            item.batch, claims = opened(batch, item.header, item.topic.rules, now_ms, item.topic.schema_rules)
            if item.batch is not batch:
                item.header = HEADER.unpack_from(item.batch)
                item.topic.stats.produce_conversions += 1
            if claims:
                _judge(item, claims, schema_ids)
        except RefusedBatchError as error:
            refused.append((item, error))
    return refused


def _judge(item: ProduceItem, claims: Sequence[SchemaClaims], schema_ids: SchemaIds) -> None:
    """Give the verdict if it can be given by what is remembered; the item keeps its claims if not."""
    known, questions = look_up(claims, schema_ids)
    if questions:
        item.claims = claims
    else:
        verdict(claims, item.header[12], known)


def _settle_all(items: Sequence[ProduceItem], schema_ids: SchemaIds) -> Refusals:
    refused: Refusals = []
    for item in items:
        try:
            settle(item.claims, item.header[12], schema_ids)
        except MoldauError as error:
            refused.append((item, error))
        item.claims = ()
    return refused
