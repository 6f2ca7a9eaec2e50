"""The live tail of a topic as server-sent events: `GET .../topics/{t}/records:tail`. Start at `Tail.tail`.

Each event's id holds the next offset of every partition seen, so that a browser that reconnects continues where it was.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any

from moldau.client.waiting import SerialCalls, in_daemon_thread
from moldau.core.ids import TopicPartition
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, text
from moldau.http.events import EVENTS, Event, event_stream
from moldau.rest.consumers.reader import BEGINNING, END, Reader, ReadLimits, ReadRecord
from moldau.rest.errors import partition_not_found, titled
from moldau.rest.records.moments import render_timestamp
from moldau.rest.records.typed import described
from moldau.rest.routes.v3_resource import V3Resource

__all__ = ["Tail"]

WAIT_S = 0.25
MAX_BYTES = 4 * 1024 * 1024
_ID = re.compile(r"[0-9]{1,10}:[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19})*")


class Tail(V3Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        parameters = (
            text("partition", "One partition; all unless given."),
            text("offset", "Where to begin: a number, earliest or latest.", default="latest"),
        )
        yield self.row(
            "GET",
            "/topics/{topic_name}/records:tail",
            self.tail,
            "Records as they arrive, as server-sent events.",
            parameters=parameters,
            media_types=EVENTS,
            reply={"type": "string"},
        )

    async def tail(self, call: Call) -> Answer:
        await self.cluster_id(call)
        starts = await self._starts(call)
        # Where reading begins is fixed before the answer: what is produced from now on is seen.
        reader = await in_daemon_thread(lambda: self._open(starts), name="rest-tail")
        return event_stream(self._events(reader))

    async def _starts(self, call: Call) -> dict[TopicPartition, int]:
        topic = await self.topic(call)
        numbers = [one.partition for one in topic.partitions]
        wanted = call.text("partition")
        if wanted:
            if wanted not in map(str, numbers):
                raise partition_not_found()
            numbers = [int(wanted)]
        begin = _offset(call.text("offset", "latest"))
        starts = {TopicPartition(topic.name, number): begin for number in numbers}
        for number, offset in _resumed(call.last_event_id).items():
            if number in numbers:
                starts[TopicPartition(topic.name, number)] = offset
        return await self._resolve(starts)

    async def _resolve(self, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Numbers for the end, so that no record is missed while reading begins."""
        at_end = {at: END for at, offset in starts.items() if offset == END}
        ends = await self.proxy.cluster.ask(lambda admin: admin.list_offsets(at_end)) if at_end else {}
        return {**starts, **ends}

    def _open(self, starts: Mapping[TopicPartition, int]) -> Reader:
        settings = self.proxy.settings
        properties = {
            "auto.offset.reset": "earliest",
            **settings.client_properties("consumer"),
            "enable.auto.commit": "false",
            "group.id": f"{settings.client_id}-tail",
        }
        reader = Reader(settings["bootstrap.servers"], properties, client_id=f"{settings.client_id}-tail")
        reader.assign_at(starts)
        return reader

    async def _events(self, reader: Reader) -> AsyncGenerator[Event, None]:
        self.proxy.tails += 1
        positions: dict[int, int] = {}
        calls = SerialCalls("rest-tail")
        try:
            while True:
                found = await calls.make(lambda: self._read(reader))
                for partition, offset, document in found:
                    positions[partition] = offset + 1
                    place = ",".join(f"{number}:{following}" for number, following in sorted(positions.items()))
                    yield Event(document, id=place)
        finally:
            self.proxy.tails -= 1
            await calls.make(reader.close)

    def _read(self, reader: Reader) -> list[tuple[int, int, str]]:
        return [
            (record.partition, record.offset, json.dumps(self._document(record), ensure_ascii=False))
            for record in reader.read(ReadLimits(WAIT_S, MAX_BYTES, min_bytes=0))
        ]

    def _document(self, record: ReadRecord) -> dict[str, Any]:
        return {
            "topic_name": record.topic,
            "partition_id": record.partition,
            "offset": record.offset,
            "timestamp": render_timestamp(record.timestamp_ms),
            "headers": [
                {"name": name, "value": None if value is None else base64.b64encode(value).decode()}
                for name, value in record.headers
            ],
            "key": described(record.key, self.proxy.schemas),
            "value": described(record.value, self.proxy.schemas),
        }


def _offset(given: str) -> int:
    word = given.lower()
    if word in ("earliest", "latest"):
        return BEGINNING if word == "earliest" else END
    if not re.fullmatch(r"[0-9]{1,18}", word):
        raise titled(400, f"offset={given} is not a number, earliest or latest.")
    return int(word)


def _resumed(last_event_id: str | None) -> dict[int, int]:
    """Partitions and offsets of the last event that a client saw; nothing for an id that is not ours."""
    if not last_event_id or not _ID.fullmatch(last_event_id):
        return {}
    pairs = (one.split(":") for one in last_event_id.split(","))
    return {int(number): min(int(offset), 2**62) for number, offset in pairs}
