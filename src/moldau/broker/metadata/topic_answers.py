"""Topics as Metadata responses tell them: encoded once, kept until they change, built in short turns.

Clients that follow a pattern ask for all topics, all of them at about the same time, and thousands of partitions take
longer to encode than the loop may be held. So the bytes of a topic are kept for each form in which clients ask for it,
and a longer answer is built a few milliseconds at a time (`in_turns`). A kept topic is used while its image, the
brokers and the set of its logs that cannot be used are the same as when it was encoded; nobody has to invalidate it.
Start at `TopicAnswers.topic`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Generator, Mapping
from time import perf_counter
from typing import Final, NamedTuple, TypeVar

from moldau.broker.metadata.topic_views import NOT_ASKED, TOPIC_OPERATIONS, partition_view
from moldau.controller.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_response import MetadataPartition, PartitionEncoder, encode_metadata_topic

__all__ = ["EncodedTopic", "Form", "Steps", "TopicAnswers", "in_turns", "told_partition"]

FIRST_WITH_LISTENER_ERROR: Final = 6
TURN_S: Final = 0.002
"""How long an answer is built before other work gets a turn on the loop."""
STEP_PARTITIONS: Final = 64
"""Partitions encoded between two looks at the clock."""
FORMS_KEPT: Final = 8

R = TypeVar("R")

Steps = Generator[None, None, R]
"""Work in small steps: `yield` between them, the result at the end."""


class Form(NamedTuple):
    """What the bytes of a topic depend on, apart from the topic."""

    version: int
    listener_name: str
    has_operations: bool


class EncodedTopic(NamedTuple):
    data: bytes
    error_codes: tuple[int, ...]
    """Every error within it, for the metrics."""


class _Kept(NamedTuple):
    topic: TopicImage
    lost: Collection[int]
    encoded: EncodedTopic


class _FormTopics:
    """The topics kept in one form."""

    __slots__ = ("brokers", "partitions", "topics")

    def __init__(self, form: Form, brokers: Mapping[int, BrokerImage]) -> None:
        self.brokers = brokers
        self.partitions = PartitionEncoder(form.version)
        self.topics: dict[str, _Kept] = {}


class TopicAnswers:
    """The kept topics of one broker; used on the loop only."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._forms: dict[Form, _FormTopics] = {}
        """Least recently used first."""
        self.building = asyncio.Lock()
        """Held while a long answer is built: whoever wants the next one then finds its topics here."""
        self.encodings = 0
        """Topics encoded so far, each for any number of responses."""

    def topic(self, image: MetadataImage, topic: TopicImage, form: Form, lost: Collection[int]) -> Steps[EncodedTopic]:
        """Return a topic's bytes; `lost` are its partitions whose log here cannot be used."""
        kept_topics = self._topics_of(form, image)
        kept = kept_topics.topics.get(topic.name)
        if kept is not None and kept.topic is topic and kept.lost == lost:
            return kept.encoded
        encoded = yield from self._encode(image, topic, form, lost, kept_topics.partitions)
        if len(kept_topics.topics) > 2 * len(image.topics):
            kept_topics.topics = {name: one for name, one in kept_topics.topics.items() if name in image.topics}
        kept_topics.topics[topic.name] = _Kept(topic, lost, encoded)
        return encoded

    def _topics_of(self, form: Form, image: MetadataImage) -> _FormTopics:
        found = self._forms.pop(form, None)
        if found is None or (found.brokers is not image.brokers and found.brokers != image.brokers):
            found = _FormTopics(form, image.brokers)
        self._forms[form] = found
        if len(self._forms) > FORMS_KEPT:
            del self._forms[next(iter(self._forms))]
        return found

    def _encode(
        self, image: MetadataImage, topic: TopicImage, form: Form, lost: Collection[int], encoder: PartitionEncoder
    ) -> Steps[EncodedTopic]:
        self.encodings += 1
        partitions: list[bytes] = []
        error_codes: list[int] = []
        for number, partition in topic.partitions.items():
            if len(partitions) % STEP_PARTITIONS == 0:
                yield
            told = told_partition(image, form, number, partition, (self._node_id,) if number in lost else ())
            if told.error_code:
                error_codes.append(told.error_code)
            partitions.append(encoder.encode(told))
        data = encode_metadata_topic(
            form.version,
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=partitions,
            operations=TOPIC_OPERATIONS if form.has_operations else NOT_ASKED,
        )
        return EncodedTopic(data, tuple(error_codes))


def told_partition(
    image: MetadataImage, form: Form, number: int, partition: PartitionImage, lost: Collection[int] = ()
) -> MetadataPartition:
    """A partition as a client of this version is told it; `lost` are brokers whose replica cannot be used."""
    view = partition_view(image, partition, form.listener_name, lost)
    error = view.error
    if error is ErrorCode.LISTENER_NOT_FOUND and form.version < FIRST_WITH_LISTENER_ERROR:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif error is ErrorCode.NONE and view.offline_replicas and form.version == 0:
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataPartition(
        int(error),
        number,
        view.leader,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        view.offline_replicas,
    )


def in_turns(steps: Steps[R], building: asyncio.Lock, *, is_long: bool) -> R | Awaitable[R]:
    """Take the steps now if they fit into one turn, else continue in later turns.

    Long answers are built one at a time. Of several that are asked for at once the first one then does the work, and
    however many there are, they take no more than one turn of an iteration.
    """
    if is_long and building.locked():
        return _take_later(steps, building)
    try:
        _take_turn(steps)
    except StopIteration as done:
        result: R = done.value
        return result
    return _take_later(steps, building)


async def _take_later(steps: Steps[R], building: asyncio.Lock) -> R:
    async with building:
        while True:
            await asyncio.sleep(0)
            try:
                _take_turn(steps)
            except StopIteration as done:
                result: R = done.value
                return result


def _take_turn(steps: Steps[object]) -> None:
    until_s = perf_counter() + TURN_S
    while perf_counter() < until_s:
        next(steps)
