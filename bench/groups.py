"""Groups of many members, spoken on plain sockets: how long a coordinator takes until all of them have their share.

A hundred librdkafka clients would be what we measure, so each member here is one connection of one event loop and does
no more than the protocol asks: it joins, syncs (the classic leader shares out the partitions), and beats when told to.
Start at `classic_times` and `consumer_times`.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from bench.clients import ClientError
from moldau.protocol.api import ApiKey, decode_response_header, encode_request_header
from moldau.protocol.messages import Message, decode_response, encode_request

__all__ = ["classic_times", "consumer_times"]

Numbers = dict[str, float]
T = TypeVar("T")

TIMEOUT_S = 120
PAUSE_S = 0.005
"""Between two rounds of heartbeats, so that waiting members leave the coordinator alone."""
NONE, LOADING, UNAVAILABLE, NOT_COORDINATOR, REBALANCING, ID_REQUIRED = 0, 14, 15, 16, 27, 79
PASSING = (LOADING, UNAVAILABLE, NOT_COORDINATOR)
VERSIONS = {
    ApiKey.FIND_COORDINATOR: 4,
    ApiKey.JOIN_GROUP: 7,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
}
"""Spoken by both brokers, so that both are asked the same."""


class Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, api: ApiKey, request: Message) -> Message:
        version = VERSIONS[api]
        frame = encode_request_header(api, version, 1, "bench") + encode_request(api, version, request)
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        answer = await self._reader.readexactly(size)
        _, position = decode_response_header(api, version, answer)
        return decode_response(api, version, memoryview(answer)[position:])

    def close(self) -> None:
        self._writer.close()


class ClassicMember:
    """Joins and syncs; where it leads, it gives every member an equal run of partitions, as `range` does."""

    def __init__(self, connection: Connection, group: str, topic: str, partitions: int) -> None:
        self._connection = connection
        self._group, self._topic, self._partitions = group, topic, partitions
        self._member_id = ""
        self._generation = -1
        self.share = 0

    async def rebalance(self) -> None:
        """From wanting to join to holding an assignment."""
        while True:
            code, others = await self._join()
            if code == NONE:
                code = await self._sync(others)
            if code == NONE:
                return
            if code not in (*PASSING, REBALANCING, ID_REQUIRED):
                raise ClientError(f"a member was refused with error {code}")

    async def learn_of_rebalance(self) -> None:
        """Beat until the coordinator wants everybody to join again, and do."""
        request = self._who(group_instance_id=None)
        while (code := (await self._connection.ask(ApiKey.HEARTBEAT, request)).error_code) != REBALANCING:
            if code != NONE:
                raise ClientError(f"a heartbeat was refused with error {code}")
            await asyncio.sleep(PAUSE_S)
        await self.rebalance()

    async def leave(self) -> None:
        who = Message(member_id=self._member_id, group_instance_id=None)
        await self._connection.ask(ApiKey.LEAVE_GROUP, Message(group_id=self._group, members=[who]))
        self._member_id, self.share = "", 0

    def _who(self, **more: Any) -> Message:
        return Message(group_id=self._group, generation_id=self._generation, member_id=self._member_id, **more)

    async def _join(self) -> tuple[int, list[str]]:
        request = Message(
            group_id=self._group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[Message(name="range", metadata=_subscription(self._topic))],
        )
        reply = await self._connection.ask(ApiKey.JOIN_GROUP, request)
        self._member_id = reply.member_id or self._member_id
        self._generation = reply.generation_id
        return reply.error_code, [one.member_id for one in reply.members]

    async def _sync(self, members: Sequence[str]) -> int:
        shares = _shares(self._partitions, len(members)) if members else []
        assignments = [
            Message(member_id=member, assignment=_assignment(self._topic, share))
            for member, share in zip(members, shares, strict=True)
        ]
        names = {"protocol_type": "consumer", "protocol_name": "range"}
        request = self._who(group_instance_id=None, assignments=assignments, **names)
        reply = await self._connection.ask(ApiKey.SYNC_GROUP, request)
        if reply.error_code == NONE:
            self.share = _share_of(reply.assignment)
        return int(reply.error_code)


class ConsumerMember:
    """Beats; takes and gives up what the answer says, at once."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._connection = connection
        self._group, self._topic = group, topic
        self._member_id = str(uuid.uuid4())
        self._owned: list[Message] = []
        self._has_news = True
        self.epoch = 0

    @property
    def share(self) -> int:
        return sum(len(one.partitions) for one in self._owned)

    async def beat(self, epoch: int | None = None) -> None:
        is_joining = self.epoch == 0 and epoch is None
        request = Message(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=60_000 if is_joining else -1,
            subscribed_topic_names=[self._topic] if is_joining else None,
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=self._owned if self._has_news else None,
        )
        reply = await self._connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
        if reply.error_code in PASSING:
            return
        if reply.error_code != NONE:
            raise ClientError(f"a heartbeat was refused: {reply.error_message or reply.error_code}")
        self.epoch = max(0, reply.member_epoch)
        self._has_news = reply.assignment is not None
        if self._has_news:
            self._owned = list(reply.assignment.topic_partitions)

    async def leave(self) -> None:
        await self.beat(epoch=-1)
        self.epoch, self._owned, self._has_news = 0, [], True


def classic_times(port: int, topic: str, members: int, partitions: int) -> Numbers:
    """Seconds until a new group is assigned (its initial delay included), and until it is again after one has left.

    The second time starts with the departure; every other member asks at once whether it must join again.
    """

    async def measure(connections: Sequence[Connection], group: str) -> Numbers:
        everyone = [ClassicMember(one, group, topic, partitions) for one in connections]
        started = time.monotonic()
        await _all(one.rebalance() for one in everyone)
        first_s = time.monotonic() - started
        _check(sum(one.share for one in everyone), partitions)
        started = time.monotonic()
        await everyone[0].leave()
        await _all(one.learn_of_rebalance() for one in everyone[1:])
        again_s = time.monotonic() - started
        _check(sum(one.share for one in everyone), partitions)
        await _all(one.leave() for one in everyone[1:])
        return {"first_s": first_s, "again_s": again_s}

    return asyncio.run(_with_connections(port, topic, members, measure))


def consumer_times(port: int, topic: str, members: int, partitions: int) -> Numbers:
    """The same for the consumer protocol, where members learn their shares by heartbeats; these come without pause."""

    async def measure(connections: Sequence[Connection], group: str) -> Numbers:
        everyone = [ConsumerMember(one, group, topic) for one in connections]
        started = time.monotonic()
        await _settle(everyone, partitions)
        first_s = time.monotonic() - started
        started = time.monotonic()
        await everyone[0].leave()
        await _settle(everyone[1:], partitions)
        again_s = time.monotonic() - started
        await _all(one.leave() for one in everyone[1:])
        return {"first_s": first_s, "again_s": again_s}

    return asyncio.run(_with_connections(port, topic, members, measure))


async def _settle(members: Sequence[ConsumerMember], partitions: int) -> None:
    """Rounds of heartbeats until all members are in one epoch and everything is owned."""
    while True:
        await _all(one.beat() for one in members)
        if len({one.epoch for one in members}) == 1 and sum(one.share for one in members) == partitions:
            return
        await asyncio.sleep(PAUSE_S)


async def _with_connections(
    port: int, topic: str, count: int, measure: Callable[[Sequence[Connection], str], Awaitable[T]]
) -> T:
    group = f"{topic}-{uuid.uuid4()}"
    connections = [await Connection.open(port) for _ in range(count)]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _find_coordinator(connections[0], group)
            return await measure(connections, group)
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        raise ClientError(f"a group of {count} did not come to rest: {error!r}") from error
    finally:
        for one in connections:
            one.close()


async def _find_coordinator(connection: Connection, group: str) -> None:
    """Until there is one: the first question creates its topic, which is nobody's rebalance."""
    request = Message(key_type=0, coordinator_keys=[group])
    while (await connection.ask(ApiKey.FIND_COORDINATOR, request)).coordinators[0].error_code != NONE:
        await asyncio.sleep(0.05)


async def _all(steps: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*steps)


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise ClientError(f"{found} of {wanted} partitions were assigned")


def _shares(partitions: int, members: int) -> list[range]:
    bounds = [partitions * number // members for number in range(members + 1)]
    return [range(first, end) for first, end in itertools.pairwise(bounds)]


def _subscription(topic: str) -> bytes:
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)


def _assignment(topic: str, share: range) -> bytes:
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si{len(share)}ii", 0, 1, len(name), name, len(share), *share, -1)


def _share_of(assignment: bytes) -> int:
    """How many partitions of its one topic an assignment made here gives."""
    (name_size,) = struct.unpack_from(">h", assignment, 6)
    (count,) = struct.unpack_from(">i", assignment, 8 + name_size)
    return int(count)
