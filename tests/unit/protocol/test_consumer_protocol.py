"""What consumers of a classic group tell each other, in all its versions and cut anywhere."""

from __future__ import annotations

import pytest

from moldau.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    PartitionsOfTopic,
    decode_assignment,
    decode_subscription,
)
from moldau.protocol.record_schemas import MalformedRecordError

TOPICS = b"\0\0\0\1\0\1t"
NO_DATA = b"\xff\xff\xff\xff"
OWNED = b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1"


def test_a_subscription_grew_with_its_versions() -> None:
    bare = ConsumerProtocolSubscription(topics=("t",), user_data=None)
    assert decode_subscription(b"\0\0" + TOPICS + NO_DATA) == (0, bare)
    owned = (PartitionsOfTopic(topic="t", partitions=(0, 1)),)
    full = ConsumerProtocolSubscription(
        topics=("t",), user_data=None, owned_partitions=owned, generation_id=7, rack_id="r"
    )
    wire = b"\0\3" + TOPICS + NO_DATA + OWNED + b"\0\0\0\7" + b"\0\1r"
    assert decode_subscription(wire) == (3, full)
    assert decode_subscription(b"\0\x09" + wire[2:] + b"from the future") == (3, full)


def test_an_assignment_names_partitions() -> None:
    _, found = decode_assignment(b"\0\1" + OWNED + b"\0\0\0\2xy")
    assert found.assigned_partitions == (PartitionsOfTopic(topic="t", partitions=(0, 1)),)
    assert found.user_data == b"xy"


@pytest.mark.parametrize("length", range(2 + len(OWNED) + len(NO_DATA)))
def test_an_assignment_that_is_cut_off_is_malformed(length: int) -> None:
    with pytest.raises(MalformedRecordError):
        decode_assignment((b"\0\1" + OWNED + NO_DATA)[:length])


def test_a_negative_version_is_malformed() -> None:
    with pytest.raises(MalformedRecordError):
        decode_assignment(b"\xff\xff" + OWNED + NO_DATA)
