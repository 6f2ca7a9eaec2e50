"""Consumer instances in versions 1 and 2. Start at `Consumers.endpoints`; `consumers/` has the instances themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from moldau.core.ids import TopicPartition
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, flag
from moldau.http.endpoints import number as number_parameter
from moldau.http.negotiation import MediaTypes
from moldau.rest.consumers.instance import ConsumerInstance, InstanceConfig
from moldau.rest.consumers.reader import BEGINNING, END, ReadLimits, ReadRecord, Reset
from moldau.rest.errors import RestError
from moldau.rest.media_types import (
    ANY_VERSION,
    FORMATS_V1,
    FORMATS_V2,
    V1,
    V1_READ,
    V2,
    V2_READ,
    embedded_format,
    embedded_type,
)
from moldau.rest.records.embedded import read_part
from moldau.rest.records.moments import parse_timestamp_ms
from moldau.rest.routes import documents
from moldau.rest.routes.resource import MAX_INT32, REFUSALS, Resource, body_object, optional_object, place, places

__all__ = ["Consumers"]

TAG = "consumers (v1, v2)"
INVALID_CONFIG, OUT_OF_RANGE, FORMAT_MISMATCH, OTHER_TOPIC = 42204, 40001, 40601, 40901
INSTANCE = "/consumers/{group}/instances/{instance}"
RESETS = {"smallest": "earliest", "largest": "latest"}
MAX_NAME = 200


class Consumers(Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        def row(method: str, path: str, handle: Any, summary: str, media_types: MediaTypes, **more: Any) -> Endpoint:
            return Endpoint(
                method=method,
                path=path,
                handle=handle,
                summary=summary,
                media_types=media_types,
                tag=TAG,
                refusals=REFUSALS,
                **more,
            )

        created: dict[str, Any] = {"body": documents.CREATE_INSTANCE, "reply": documents.OBJECT}
        yield row("POST", "/consumers/{group}", self.create_v1, "Create an instance (v1).", V1, **created)
        yield row("POST", "/consumers/{group}", self.create_v2, "Create an instance (v2).", V2, **created)
        yield row("DELETE", INSTANCE, self.delete, "Delete an instance.", ANY_VERSION, status=204)
        limit = number_parameter("max_bytes", "Bytes of keys and values at most.", MAX_INT32)
        timeout = number_parameter("timeout", "Milliseconds to wait for records.", 1000)
        yield row(
            "GET",
            f"{INSTANCE}/topics/{{topic}}",
            self.read_v1,
            "Read records of a topic (v1).",
            V1_READ,
            parameters=(limit,),
            reply=documents.LIST,
        )
        yield row(
            "GET",
            f"{INSTANCE}/records",
            self.read_v2,
            "Read records (v2).",
            V2_READ,
            parameters=(limit, timeout),
            reply=documents.LIST,
        )
        yield row(
            "POST",
            f"{INSTANCE}/offsets",
            self.commit,
            "Commit offsets, or all that was read.",
            ANY_VERSION,
            body=documents.COMMIT,
            reply=documents.LIST,
            parameters=(flag("async", "Answer before the commit is done."),),
        )
        yield row("GET", f"{INSTANCE}/offsets", self.committed, "Committed offsets.", V2, reply=documents.OBJECT)
        for path, handlers, body in (
            ("subscription", (self.subscribe, self.subscription, self.unsubscribe), documents.SUBSCRIPTION),
            ("assignments", (self.assign, self.assignments, None), documents.PARTITIONS),
        ):
            post, get, delete = handlers
            yield row("POST", f"{INSTANCE}/{path}", post, f"Set the {path}.", V2, body=body, status=204)
            yield row("GET", f"{INSTANCE}/{path}", get, f"The {path}.", V2, reply=documents.OBJECT)
            if delete is not None:
                yield row("DELETE", f"{INSTANCE}/{path}", delete, f"Drop the {path}.", V2, status=204)
        for path, handle, body in (
            ("positions", self.seek, documents.POSITIONS),
            ("positions/beginning", self.seek_to_beginning, documents.PARTITIONS),
            ("positions/end", self.seek_to_end, documents.PARTITIONS),
        ):
            yield row("POST", f"{INSTANCE}/{path}", handle, "Continue elsewhere.", V2, body=body, status=204)

    # Creating and deleting

    async def create_v1(self, call: Call) -> Answer:
        return self._create(call, await optional_object(call) or {}, version=1)

    async def create_v2(self, call: Call) -> Answer:
        return self._create(call, await optional_object(call) or {}, version=2)

    def _create(self, call: Call, document: Mapping[str, Any], *, version: int) -> Answer:
        group = call.parts["group"]
        if not group:
            raise RestError(422, "The group's name is empty")
        name = _instance_name(document)
        config = _instance_config(document, version, self.proxy.settings.values)
        instance = self.proxy.instances.create(group, name, config)
        uri = f"{self.proxy.base_url(call)}/consumers/{_quoted(group)}/instances/{_quoted(instance.name)}"
        return Answer({"instance_id": instance.name, "base_uri": uri})

    async def delete(self, call: Call) -> Answer:
        await self.proxy.instances.remove(call.parts["group"], call.parts["instance"])
        return Answer(status=204)

    # Reading

    async def read_v1(self, call: Call) -> Answer:
        topic = call.parts["topic"]
        async with self._instance(call) as instance:
            self._check_format(call, instance)
            if instance.is_subscribed and instance.subscription != (topic,):
                raise RestError(
                    OTHER_TOPIC, "Consumer already subscribed to another topic: an instance of v1 reads one topic"
                )
            if not instance.is_subscribed:
                await self.proxy.cluster.topic(topic)
                await instance.subscribe([topic], None)
            return await self._read(call, instance, instance.config.request_timeout_ms, waits_for_group=True)

    async def read_v2(self, call: Call) -> Answer:
        async with self._instance(call) as instance:
            self._check_format(call, instance)
            asked = _query_number(call, "timeout")
            timeout_ms = instance.config.request_timeout_ms if asked is None else asked
            return await self._read(
                call, instance, min(timeout_ms, instance.config.request_timeout_ms), waits_for_group=asked is None
            )

    async def _read(self, call: Call, instance: ConsumerInstance, timeout_ms: int, *, waits_for_group: bool) -> Answer:
        settings, embedded = self.proxy.settings, instance.config.format
        max_bytes = settings["consumer.request.max.bytes"]
        asked = _query_number(call, "max_bytes")
        if asked is not None and asked > 0:
            max_bytes = min(max_bytes, asked)
        join_s = settings["moldau.consumer.join.wait.ms"] / 1000 if waits_for_group else 0.0
        limits = ReadLimits(timeout_ms / 1000, max_bytes, instance.config.min_bytes, join_s)

        def convert(record: ReadRecord) -> dict[str, Any]:
            about = f"{record.topic}-{record.partition}@{record.offset}"
            return {
                "topic": record.topic,
                "key": read_part(record.key, embedded, self.proxy.schemas, f"key of {about}"),
                "value": read_part(record.value, embedded, self.proxy.schemas, f"value of {about}"),
                "partition": record.partition,
                "offset": record.offset,
            }

        records = await instance.read(limits, convert)
        return Answer(records, media_type=embedded_type(embedded, instance.config.version))

    def _check_format(self, call: Call, instance: ConsumerInstance) -> None:
        """Raise 40601 if the client accepts another format than the instance's."""
        accepted = [embedded_format(one) for one in (call.headers.get("accept") or "").split(",")]
        named = [one for one in accepted if one is not None]
        if named and instance.config.format not in named:
            raise RestError(
                FORMAT_MISMATCH,
                "The requested embedded data format does not match the deserializer for this consumer instance: "
                f"it was created with format {instance.config.format}",
            )

    # What is read

    async def subscribe(self, call: Call) -> Answer:
        document = await body_object(call)
        topics, pattern = document.get("topics"), document.get("topic_pattern")
        if (topics is None) == (pattern is None):
            raise RestError(422, "Give either topics or topic_pattern")
        if topics is not None and not (
            isinstance(topics, list) and topics and all(isinstance(one, str) and one for one in topics)
        ):
            raise RestError(422, "topics must be a list of names")
        if pattern is not None:
            _check_pattern(pattern)
        async with self._instance(call) as instance:
            await instance.subscribe(topics or [], pattern)
        return Answer(status=204)

    async def subscription(self, call: Call) -> Answer:
        async with self._instance(call) as instance:
            topics: list[str] = list(instance.subscription)
            if instance.pattern is not None:
                assigned = await instance.assignment()
                topics = sorted({one.topic for one in assigned})
            return Answer({"topics": topics})

    async def unsubscribe(self, call: Call) -> Answer:
        async with self._instance(call) as instance:
            await instance.unsubscribe()
        return Answer(status=204)

    async def assign(self, call: Call) -> Answer:
        wanted = places(await body_object(call))
        async with self._instance(call) as instance:
            await instance.assign(wanted)
        return Answer(status=204)

    async def assignments(self, call: Call) -> Answer:
        async with self._instance(call) as instance:
            assigned = await instance.assignment()
        return Answer({"partitions": [{"topic": one.topic, "partition": one.partition} for one in assigned]})

    # Positions

    async def seek(self, call: Call) -> Answer:
        document = await body_object(call)
        offsets = _listed_offsets(document)
        times: dict[TopicPartition, int] = {}
        for position, one in enumerate(_listed(document, "timestamps")):
            at = place(one, f"timestamps[{position}]")
            times[at] = parse_timestamp_ms(one.get("timestamp"))

        return await self._seek(call, offsets, times)

    async def seek_to_beginning(self, call: Call) -> Answer:
        return await self._seek(call, dict.fromkeys(places(await body_object(call)), BEGINNING))

    async def seek_to_end(self, call: Call) -> Answer:
        return await self._seek(call, dict.fromkeys(places(await body_object(call)), END))

    async def _seek(self, call: Call, offsets: Reset, times: Reset = MappingProxyType({})) -> Answer:
        join_s = self.proxy.settings["moldau.consumer.join.wait.ms"] / 1000
        async with self._instance(call) as instance:
            await instance.seek(offsets, times, join_s=join_s)
        return Answer(status=204)

    # Offsets

    async def commit(self, call: Call) -> Answer:
        document = await optional_object(call)
        offsets = None
        if document is not None and document.get("offsets") is not None:
            # What is given was processed last; what is stored is what to read next.
            offsets = {at: offset + 1 for at, offset in _listed_offsets(document).items()}
        async with self._instance(call) as instance:
            committed = await instance.commit(offsets, is_async=call.flag("async"))
            if instance.config.version == 2:
                return Answer([])
        return Answer(
            [
                {"topic": at.topic, "partition": at.partition, "consumed": offset - 1, "committed": offset - 1}
                for at, offset in sorted(committed.items())
            ]
        )

    async def committed(self, call: Call) -> Answer:
        document = await optional_object(call)
        if document is None:
            raise RestError(40402, "Partition not found: name them in the body")
        wanted = places(document)
        async with self._instance(call) as instance:
            found = await instance.committed(wanted)
        return Answer(
            {
                "offsets": [
                    {"topic": at.topic, "partition": at.partition, "offset": found[at], "metadata": ""}
                    for at in wanted
                    if at in found
                ]
            }
        )

    def _instance(self, call: Call) -> Any:
        return self.proxy.instances.using(call.parts["group"], call.parts["instance"])


def _instance_name(document: Mapping[str, Any]) -> str | None:
    name = document.get("id") if document.get("id") is not None else document.get("name")
    if name is None or name == "":
        return None
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise RestError(422, f"The instance's name must be a string of at most {MAX_NAME} characters")
    return name


def _instance_config(document: Mapping[str, Any], version: int, defaults: Mapping[str, Any]) -> InstanceConfig:
    formats = FORMATS_V1 if version == 1 else FORMATS_V2
    embedded = document.get("format", "binary") or "binary"
    if not isinstance(embedded, str) or embedded.lower() not in formats:
        raise RestError(422, f"Invalid format type {embedded!r}: use one of {', '.join(formats)}")
    properties = {}
    reset = _optional_text(document, "auto.offset.reset")
    if reset is not None:
        reset = RESETS.get(reset.lower(), reset.lower())
        if reset not in ("earliest", "latest", "none"):
            raise RestError(
                INVALID_CONFIG,
                f"Invalid consumer configuration: auto.offset.reset={reset}: use earliest, latest or none",
            )
        properties["auto.offset.reset"] = reset
    for name in ("auto.commit.enable", "enable.auto.commit"):
        commits = _optional_text(document, name)
        if commits is None:
            continue
        if commits.lower() not in ("true", "false"):
            raise RestError(INVALID_CONFIG, f"Invalid consumer configuration: {name}={commits}: use true or false")
        properties["enable.auto.commit"] = commits.lower()
    min_bytes = _optional_number(document, "fetch.min.bytes", defaults["fetch.min.bytes"])
    if not -1 <= min_bytes <= 10_000_000:
        raise RestError(OUT_OF_RANGE, f"Invalid value {min_bytes} for fetch.min.bytes: use -1 to 10000000")
    timeout_ms = _optional_number(document, "consumer.request.timeout.ms", defaults["consumer.request.timeout.ms"])
    if not 0 <= timeout_ms <= MAX_INT32:
        raise RestError(OUT_OF_RANGE, f"Invalid value {timeout_ms} for consumer.request.timeout.ms: use 0 or more")
    return InstanceConfig(
        version=version,
        format=embedded.lower(),
        properties=properties,
        request_timeout_ms=timeout_ms,
        min_bytes=min_bytes,
    )


def _optional_text(document: Mapping[str, Any], name: str) -> str | None:
    """A setting as text; JSON's truth values count too."""
    given = document.get(name)
    if given is None:
        return None
    if isinstance(given, bool):
        return "true" if given else "false"
    if not isinstance(given, str):
        raise RestError(INVALID_CONFIG, f"Invalid consumer configuration: {name} must be a string")
    return given


def _optional_number(document: Mapping[str, Any], name: str, default: int) -> int:
    given = document.get(name)
    if given is None:
        return default
    if isinstance(given, str) and re.fullmatch(r"-?[0-9]{1,10}", given):
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise RestError(INVALID_CONFIG, f"Invalid consumer configuration: {name} must be a number")
    return given


def _check_pattern(pattern: Any) -> None:
    if not isinstance(pattern, str) or not pattern or "\0" in pattern:
        raise RestError(422, "topic_pattern must be a regular expression")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        raise RestError(422, f"topic_pattern {pattern!r} is not a regular expression") from None


def _listed(document: Mapping[str, Any], name: str) -> list[Any]:
    listed = document.get(name)
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise RestError(422, f"{name} must be a list")
    return listed


def _listed_offsets(document: Mapping[str, Any]) -> dict[TopicPartition, int]:
    offsets = {}
    for position, one in enumerate(_listed(document, "offsets")):
        at = place(one, f"offsets[{position}]")
        offset = one.get("offset")
        if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 2**63 - 1:
            raise RestError(422, f"offsets[{position}]: offset must be a number from 0")
        offsets[at] = offset
    return offsets


def _query_number(call: Call, name: str) -> int | None:
    text = call.text(name)
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", text) or int(text) < -1:
        raise RestError(422, f"{name} must be a number from 0")
    return int(text) if int(text) >= 0 else None


def _quoted(text: str) -> str:
    return quote(text, safe="")
