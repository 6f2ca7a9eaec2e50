"""Topics, partitions and brokers, and producing to them, in versions 1 and 2. Start at `Topics.endpoints`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from moldau.client.admin import PartitionDescription
from moldau.client.errors import ClientError
from moldau.client.waiting import in_daemon_thread
from moldau.core.ids import TopicPartition
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Parameter, number
from moldau.rest.consumers.reader import Reader, ReadLimits, ReadRecord
from moldau.rest.errors import RestError, partition_not_found, record_error_code
from moldau.rest.media_types import ANY_VERSION, V1_PRODUCE, V1_READ, V2, V2_PRODUCE, V2_READ, embedded_format
from moldau.rest.producing import Delivered
from moldau.rest.proxy import Proxy
from moldau.rest.records.embedded import ConvertedRequest, converted_request, needs_registry, read_part
from moldau.rest.routes import documents
from moldau.rest.routes.resource import MAX_INT32, REFUSALS, Resource, body_object, partition_number

__all__ = ["Topics"]

TAG = "topics (v1, v2)"
POOL_EXHAUSTED = 50301
MAX_COUNT = 10_000


class Topics(Resource):
    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy)
        self._simple_reads = asyncio.Semaphore(proxy.settings["simpleconsumer.pool.size.max"])

    def endpoints(self) -> Iterator[Endpoint]:
        def get(path: str, handle: Any, summary: str, reply: Mapping[str, Any], **more: Any) -> Endpoint:
            more = {"media_types": ANY_VERSION, **more}
            return Endpoint(
                method="GET", path=path, handle=handle, summary=summary, reply=reply, tag=TAG, refusals=REFUSALS, **more
            )

        yield get("/", self.root, "An empty object, which says that the proxy is there.", documents.OBJECT)
        yield get("/topics", self.names, "The names of all topics.", documents.NAMES)
        yield get("/topics/{topic}", self.topic, "A topic with its configs and partitions.", documents.OBJECT)
        yield get("/topics/{topic}/partitions", self.partitions, "A topic's partitions.", documents.LIST)
        yield get("/topics/{topic}/partitions/{partition}", self.partition, "One partition.", documents.OBJECT)
        yield get(
            "/topics/{topic}/partitions/{partition}/offsets",
            self.offsets,
            "The first and the next offset.",
            documents.OBJECT,
            media_types=V2,
        )
        yield get("/brokers", self.brokers, "The ids of the brokers.", documents.OBJECT)
        yield from self._produce_rows("/topics/{topic}", has_partition=False)
        yield from self._produce_rows("/topics/{topic}/partitions/{partition}", has_partition=True)
        messages = "/topics/{topic}/partitions/{partition}/messages"
        parameters = (
            Parameter("offset", "Where to begin.", {"type": "integer", "minimum": 0}),
            number("count", "How many records.", 1),
        )
        yield get(
            messages,
            self.messages,
            "Records by offset (v1).",
            documents.LIST,
            media_types=V1_READ,
            parameters=parameters,
        )
        yield get(messages, _removed, "Removed in v2.", documents.LIST, media_types=V2_READ)

    def _produce_rows(self, path: str, *, has_partition: bool) -> Iterator[Endpoint]:
        async def produce(call: Call) -> Answer:
            return await self.produce(call, has_partition=has_partition)

        where = "a partition" if has_partition else "a topic"
        for version, media_types in ((1, V1_PRODUCE), (2, V2_PRODUCE)):
            yield Endpoint(
                method="POST",
                path=path,
                handle=produce,
                summary=f"Produce records to {where} (v{version}).",
                body=documents.PRODUCE,
                reply=documents.OBJECT,
                tag=TAG,
                refusals=REFUSALS,
                media_types=media_types,
            )

    # Metadata

    async def root(self, _call: Call) -> Answer:
        return Answer({})

    async def names(self, _call: Call) -> Answer:
        return Answer(await self.proxy.cluster.topic_names())

    async def topic(self, call: Call) -> Answer:
        name = call.parts["topic"]
        found = await self.proxy.cluster.topic(name)
        configs = await self.proxy.cluster.ask(lambda admin: admin.describe_configs("topic", [name]))
        return Answer(
            {
                "name": name,
                "configs": {entry.name: entry.value for entry in configs[name]},
                "partitions": [_partition(one) for one in found.partitions],
            }
        )

    async def partitions(self, call: Call) -> Answer:
        found = await self.proxy.cluster.topic(call.parts["topic"])
        return Answer([_partition(one) for one in found.partitions])

    async def partition(self, call: Call) -> Answer:
        found = await self.proxy.cluster.topic(call.parts["topic"])
        number = partition_number(call)
        for one in found.partitions:
            if one.partition == number:
                return Answer(_partition(one))
        raise partition_not_found()

    async def offsets(self, call: Call) -> Answer:
        first, following = await self.proxy.cluster.offsets(call.parts["topic"], partition_number(call))
        return Answer({"beginning_offset": first, "end_offset": following})

    async def brokers(self, _call: Call) -> Answer:
        description = await self.proxy.cluster.description()
        return Answer({"brokers": [node.id for node in description.nodes]})

    # Producing

    async def produce(self, call: Call, *, has_partition: bool) -> Answer:
        topic = call.parts["topic"]
        embedded = embedded_format(call.headers.get("content-type")) or "binary"
        document = await body_object(call)
        partition = None
        if has_partition:
            partition = partition_number(call)
            await self._check_partition(topic, partition)
        request = await self._converted(document, embedded, topic, has_partition=has_partition)
        records = request.records
        if partition is not None:
            records = [record._replace(partition=partition) for record in records]
        outcomes = [await outcome for outcome in await self.proxy.producer.send(topic, records)]
        return _produce_answer(request, outcomes)

    async def _converted(
        self, document: dict[str, Any], embedded: str, topic: str, *, has_partition: bool
    ) -> ConvertedRequest:
        def convert() -> ConvertedRequest:
            return converted_request(document, embedded, topic, self.proxy.schemas, has_partition=has_partition)

        if needs_registry(embedded):
            return await in_daemon_thread(convert, name="rest-convert")
        return convert()

    async def _check_partition(self, topic: str, partition: int) -> None:
        try:
            found = await self.proxy.cluster.topic(topic)
        except RestError:
            return  # the broker may create the topic
        if partition not in {one.partition for one in found.partitions}:
            raise partition_not_found()

    # Reading by offset (v1)

    async def messages(self, call: Call) -> Answer:
        topic, partition = call.parts["topic"], partition_number(call)
        offset, count = _query_number(call, "offset", None), _query_number(call, "count", 1)
        first, end = await self.proxy.cluster.offsets(topic, partition)
        if not first <= offset <= end:
            raise RestError(422, f"offset {offset} is not in {topic}-{partition}: it has {first} to {end}")
        embedded = embedded_format(call.media_type) or "binary"
        wait_s = self.proxy.settings["simpleconsumer.pool.timeout.ms"] / 1000
        try:
            await asyncio.wait_for(self._simple_reads.acquire(), wait_s)
        except TimeoutError:
            raise RestError(
                POOL_EXHAUSTED, "No SimpleConsumer is available at the time: try again in a moment"
            ) from None
        try:
            count = min(count, end - offset, MAX_COUNT)
            place = TopicPartition(topic, partition)
            return Answer(
                await in_daemon_thread(lambda: self._read(place, offset, count, embedded), name="rest-simple")
            )
        finally:
            self._simple_reads.release()

    def _read(self, place: TopicPartition, offset: int, count: int, embedded: str) -> list[dict[str, Any]]:
        settings = self.proxy.settings
        properties = {**settings.client_properties("consumer"), "enable.auto.commit": "false"}
        properties["group.id"] = f"{settings.client_id}-simple"
        reader = Reader(settings["bootstrap.servers"], properties, client_id=f"{settings.client_id}-simple")
        records: list[ReadRecord] = []
        try:
            reader.assign_at({place: offset})
            limits = ReadLimits(settings["consumer.request.timeout.ms"] / 1000, MAX_INT32, min_bytes=0)
            while len(records) < count:
                found = reader.read(limits)
                records += found
                if not found:
                    break
        finally:
            reader.close()
        return [
            {
                "key": read_part(record.key, embedded, self.proxy.schemas, f"key of {place}@{record.offset}"),
                "value": read_part(record.value, embedded, self.proxy.schemas, f"value of {place}@{record.offset}"),
                "partition": record.partition,
                "offset": record.offset,
            }
            for record in records[:count]
        ]


async def _removed(_call: Call) -> Answer:
    raise RestError(404, "HTTP 404 Not Found: this call exists in version 1 only")


def _query_number(call: Call, name: str, default: int | None) -> int:
    text = call.text(name)
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
        raise RestError(422, f"{name} must be a number from 0")
    return int(text)


def _partition(found: PartitionDescription) -> dict[str, Any]:
    return {
        "partition": found.partition,
        "leader": -1 if found.leader is None else found.leader,
        "replicas": [
            {"broker": broker, "leader": broker == found.leader, "in_sync": broker in found.isr}
            for broker in found.replicas
        ],
    }


def _produce_answer(request: ConvertedRequest, outcomes: list[Delivered | ClientError]) -> Answer:
    offsets = [_offset(outcome) for outcome in outcomes]
    codes = {offset["error_code"] for offset in offsets}
    status = 401 if 40101 in codes else 403 if 40301 in codes else 200
    document = {
        "offsets": offsets,
        "key_schema_id": request.key_schema_id,
        "value_schema_id": request.value_schema_id,
    }
    return Answer(document, status=status)


def _offset(outcome: Delivered | ClientError) -> dict[str, Any]:
    if isinstance(outcome, Delivered):
        return {"partition": outcome.partition, "offset": outcome.offset, "error_code": None, "error": None}
    return {"partition": None, "offset": None, "error_code": record_error_code(outcome), "error": str(outcome)}
