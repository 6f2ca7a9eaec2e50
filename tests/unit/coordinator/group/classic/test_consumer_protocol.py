"""What consumers of the classic protocol tell each other, byte by byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinator.group.classic.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)

TOPICS = b"\x00\x00\x00\x01" + b"\x00\x01t"
OWNED = b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x00" + b"\x00\x00\x00\x05"
NO_DATA = b"\xff\xff\xff\xff"


def test_each_version_of_a_subscription_is_read() -> None:
    owned = (("t", (0, 5)),)
    assert decode_subscription(b"\x00\x00" + TOPICS + NO_DATA) == Subscription(0, ("t",))
    assert decode_subscription(b"\x00\x01" + TOPICS + NO_DATA + OWNED) == Subscription(1, ("t",), owned)
    generation = b"\x00\x00\x00\x07"
    assert decode_subscription(b"\x00\x02" + TOPICS + b"\0\0\0\x01x" + OWNED + generation) == Subscription(
        2, ("t",), owned, 7
    )
    rack = b"\x00\x01r"
    assert decode_subscription(b"\x00\x03" + TOPICS + NO_DATA + OWNED + generation + rack) == Subscription(
        3, ("t",), owned, 7, "r"
    )


def test_an_assignment_comes_back() -> None:
    data = encode_assignment(1, [("t", [0, 5])])
    assert data == b"\x00\x01" + OWNED + NO_DATA
    assert decode_assignment(data) == (("t", (0, 5)),)
    assert decode_assignment(b"") == ()


@given(st.binary(max_size=60))
def test_noise_is_refused_or_read_never_worse(data: bytes) -> None:
    decode_subscription(data)
    decode_assignment(data)


@given(st.integers(0, 20))
def test_a_cut_subscription_is_none(length: int) -> None:
    whole = b"\x00\x01" + TOPICS + NO_DATA + OWNED
    assert decode_subscription(whole[:length]) is None
