"""Producing in version 3: one record, a stream of records, or a batch. Start at `Records.produce`.

A stream has two halves: `_accept` reads, converts and hands over records, `_reports` answers them in order, each when
it is stored. A bounded queue between them holds back a client that sends faster than records are stored.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from moldau.client.errors import ClientError
from moldau.client.waiting import in_daemon_thread
from moldau.http.calls import Answer, Call, decode_json, encode_json
from moldau.http.endpoints import Endpoint
from moldau.http.errors import ClientGoneError, HttpError
from moldau.http.json_stream import JsonObjectSplitter
from moldau.http.negotiation import JSON
from moldau.rest.errors import RestError, broker_error, titled
from moldau.rest.producing import Outcome
from moldau.rest.records.moments import render_timestamp
from moldau.rest.records.typed import ConvertedRecord, converted_record, needs_registry
from moldau.rest.routes import documents
from moldau.rest.routes.resource import body_object
from moldau.rest.routes.v3_resource import CLUSTER, V3Resource

__all__ = ["Records"]

PAYLOAD_ERROR, BATCH_ERROR = 42206, 42208
_TOO_LONG = RestError(408, "Request Timeout: the stream was open for too long; open another one.")
_logger = logging.getLogger("moldau.rest")
GROUPS_IN_FLIGHT = 64
"""Groups of records of one stream that wait for their reports; a group is what arrived together, 64 KiB at most."""
ENTRY_ID = re.compile(r"[0-9a-zA-Z\-_]{1,80}")

Waiting = tuple[ConvertedRecord, asyncio.Future[Outcome]] | RestError
"""A record that was handed over, or why it was not."""


class Records(V3Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        yield Endpoint(
            method="POST",
            path=f"{CLUSTER}/topics/{{topic_name}}/records",
            handle=self.produce,
            summary="Produce a record, or a stream of records with a stream of reports.",
            body=documents.RECORD,
            reply=documents.OBJECT,
            tag=self.tag,
            media_types=JSON,
            is_stream=True,
        )
        yield self.row(
            "POST",
            "/topics/{topic_name}/records:batch",
            self.produce_batch,
            "Produce a list of records.",
            body=documents.BATCH,
            status=207,
        )

    # A stream of records

    async def produce(self, call: Call) -> Answer:
        groups = self._groups(call)
        first = await anext(groups, None)
        if first is None:
            raise RestError(PAYLOAD_ERROR, "Payload error. The request has no body: send at least one record.")
        return Answer(stream=self._reports(call, first, groups))

    async def _groups(self, call: Call) -> AsyncGenerator[list[Any], None]:
        """The objects of the body, those that arrived together in a list; an error is the last one."""
        splitter = JsonObjectSplitter(self.proxy.settings["moldau.record.max.bytes"])
        found: list[Any] = []
        try:
            async for piece in call.stream():
                for document in splitter.documents(piece, decode_json):
                    found.append(document)
                if found:
                    yield found
                    found = []
            splitter.finish()
        except ClientGoneError:
            return
        except HttpError as error:
            yield [*found, titled(error.status, str(error))]

    async def _reports(
        self, call: Call, first: list[Any], groups: AsyncGenerator[list[Any], None]
    ) -> AsyncGenerator[bytes, None]:
        """Reports in the order of records; those that are ready leave together."""
        queue: asyncio.Queue[list[Waiting] | None] = asyncio.Queue(GROUPS_IN_FLIGHT)
        accepting = asyncio.create_task(self._accept(call.parts["topic_name"], first, groups, queue))
        self.proxy.open_streams += 1
        reports = _Reports(call.parts["cluster_id"], call.parts["topic_name"])
        ready: list[bytes] = []
        try:
            while (group := await queue.get()) is not None:
                for waiting in group:
                    if not isinstance(waiting, RestError) and not waiting[1].done():
                        if ready:
                            yield b"".join(ready)
                            ready = []
                        await waiting[1]
                    ready.append(reports.render(waiting))
                if queue.empty():
                    yield b"".join(ready)
                    ready = []
            if ready:
                yield b"".join(ready)
        finally:
            self.proxy.open_streams -= 1
            accepting.cancel()
            await asyncio.wait((accepting,))
            await groups.aclose()

    async def _accept(
        self,
        topic: str,
        first: list[Any],
        groups: AsyncGenerator[list[Any], None],
        queue: asyncio.Queue[list[Waiting] | None],
    ) -> None:
        clock = asyncio.get_running_loop().time
        settings = self.proxy.settings
        limit = clock() + settings["streaming.connection.max.duration.ms"] / 1000
        grace_s = settings["streaming.connection.max.duration.grace.period.ms"] / 1000
        group: list[Any] | None = first
        try:
            async with asyncio.timeout_at(limit + grace_s):
                while group is not None:
                    if clock() < limit:
                        await queue.put([await self._hand_over(topic, document) for document in group])
                    else:
                        await queue.put([_TOO_LONG] * len(group))
                    group = await anext(groups, None)
        except TimeoutError:
            pass  # the stream was open too long, and its grace period is over
        except Exception:
            _logger.exception("a produce stream to %s failed", topic)
            await queue.put([titled(500, "the REST proxy failed, see its log.")])
        # Not where this is cancelled: then nobody reads the queue any more, and it may be full.
        await queue.put(None)

    async def _hand_over(self, topic: str, document: Any) -> Waiting:
        if isinstance(document, RestError):
            return document
        try:
            converted = await self._converted(topic, document)
        except RestError as error:
            return error
        record = converted.record
        future = self.proxy.producer.send_soon(topic, record) or (await self.proxy.producer.send(topic, [record]))[0]
        return converted, future

    async def _converted(self, topic: str, document: Any) -> ConvertedRecord:
        if needs_registry(document):
            return await in_daemon_thread(
                lambda: converted_record(document, topic, self.proxy.schemas), name="rest-convert"
            )
        return converted_record(document, topic, self.proxy.schemas)

    # A batch

    async def produce_batch(self, call: Call) -> Answer:
        topic = call.parts["topic_name"]
        if not (await call.content()).strip():
            raise RestError(BATCH_ERROR, "Batch error. The request has no body.")
        entries = self._entries(await body_object(call))
        waiting = [
            (entry["id"], await self._hand_over(topic, {name: part for name, part in entry.items() if name != "id"}))
            for entry in entries
        ]
        successes, failures = [], []
        for entry_id, one in waiting:
            if not isinstance(one, RestError):
                await one[1]
            report = _report(one, call.parts["cluster_id"], topic)
            code = report.pop("error_code")
            if code == 200:
                successes.append({"id": entry_id, **report})
            else:
                failures.append({"id": entry_id, "error_code": code, "message": report["message"]})
        return Answer({"successes": successes, "failures": failures}, status=207)

    def _entries(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        entries, limit = document.get("entries"), self.proxy.settings["api.v3.produce.batch.maximum.entries"]
        if not isinstance(entries, list) or not entries:
            raise RestError(BATCH_ERROR, "Batch error. entries must be a list of records.")
        if len(entries) > limit:
            raise RestError(BATCH_ERROR, f"Batch error. {len(entries)} entries are more than {limit}.")
        ids = []
        for entry in entries:
            entry_id = entry.get("id") if isinstance(entry, dict) else None
            if not isinstance(entry_id, str) or not ENTRY_ID.fullmatch(entry_id):
                raise RestError(
                    BATCH_ERROR, "Batch error. Every entry needs an id of 1 to 80 letters, digits, - and _."
                )
            ids.append(entry_id)
        if len(set(ids)) < len(ids):
            raise RestError(BATCH_ERROR, "Batch error. The ids of entries must be distinct.")
        return entries


class _Reports:
    """Renders the reports of a stream: what they have in common is encoded once, as streams have many."""

    def __init__(self, cluster_id: str, topic: str) -> None:
        self._names = cluster_id, topic
        head = encode_json({"error_code": 200, "cluster_id": cluster_id, "topic_name": topic})
        self._head = head[:-1].decode()
        self._time_ms, self._time = -1, "null"

    def render(self, waiting: Waiting) -> bytes:
        """One report, as a line."""
        if isinstance(waiting, RestError) or waiting[0].key is not None or waiting[0].value is None:
            return encode_json(_report(waiting, *self._names)) + b"\n"
        value, outcome = waiting[0].value, waiting[1].result()
        if isinstance(outcome, ClientError) or value.schema is not None:
            return encode_json(_report(waiting, *self._names)) + b"\n"
        if outcome.timestamp_ms != self._time_ms:
            self._time_ms = outcome.timestamp_ms
            self._time = encode_json(render_timestamp(outcome.timestamp_ms)).decode()
        return (
            f'{self._head},"partition_id":{outcome.partition},"offset":{outcome.offset},"timestamp":{self._time},'
            f'"value":{{"type":"{value.type}","size":{len(value.content or b"")}}}}}\n'
        ).encode()


def _report(waiting: Waiting, cluster_id: str, topic: str) -> dict[str, Any]:
    """The delivery report of a record."""
    if isinstance(waiting, RestError):
        return {"error_code": waiting.error_code, "message": str(waiting)}
    converted, future = waiting
    outcome = future.result()
    if isinstance(outcome, ClientError):
        error = broker_error(outcome)
        return {"error_code": error.error_code, "message": str(error)}
    report: dict[str, Any] = {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": outcome.partition,
        "offset": outcome.offset,
        "timestamp": render_timestamp(outcome.timestamp_ms),
    }
    if converted.key is not None:
        report["key"] = converted.key.report
    if converted.value is not None:
        report["value"] = converted.value.report
    return report
