"""Types for Kafka's ids and numbers: nodes, topics, partitions, offsets, epochs.

Ids are types, so that a signature says which number it expects. Start at `TopicPartition`.
"""

from __future__ import annotations

import base64
import uuid
from typing import Final, NamedTuple, NewType

__all__ = [
    "INT32_MAX",
    "INT64_MAX",
    "NodeId",
    "Offset",
    "ProducerId",
    "TopicPartition",
    "parse_uuid",
    "random_uuid",
    "render_uuid",
]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
"""The largest numbers in Kafka's protocol; often they mean "no limit"."""

NodeId = NewType("NodeId", int)
Offset = NewType("Offset", int)
ProducerId = NewType("ProducerId", int)


class TopicPartition(NamedTuple):
    """One partition of one topic. Its text is its directory's name: `topic-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, directory_name: str) -> TopicPartition:
        """Split at the last dash, so that `a-1-2` is partition 2 of `a-1`."""
        topic, dash, partition = directory_name.rpartition("-")
        if not dash or not topic or not partition.isdigit():
            raise ValueError(f"{directory_name!r} is not of the form <topic>-<partition>")
        return cls(topic, int(partition))


def render_uuid(value: uuid.UUID) -> str:
    """Kafka's text form: url-safe base64 of the 16 bytes without padding, 22 characters."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> uuid.UUID:
    """Parse the 22-character form; raises `ValueError` for anything else."""
    if len(text) != 22:
        raise ValueError(f"{text!r} is not a 22-character id; make one with kafka-storage random-uuid")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def random_uuid() -> uuid.UUID:
    """A random id whose text does not begin with a dash, which tools would parse as an option.

    Ids 0 to 99 are reserved by Kafka; a random version-4 uuid is never among them.
    """
    while True:
        candidate = uuid.uuid4()
        if not render_uuid(candidate).startswith("-"):
            return candidate
