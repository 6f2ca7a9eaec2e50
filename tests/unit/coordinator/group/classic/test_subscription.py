from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinator.group.classic.consumer_protocol import subscribed_topics


def encoded(topics: list[str], rest: bytes = b"") -> bytes:
    names = b"".join(struct.pack(">h", len(name.encode())) + name.encode() for name in topics)
    return struct.pack(">hi", 1, len(topics)) + names + rest


@given(st.lists(st.text(max_size=20), max_size=5), st.binary(max_size=20))
def test_topics_are_read_whatever_the_assignor_adds(topics: list[str], rest: bytes) -> None:
    assert subscribed_topics(encoded(topics, rest)) == set(topics)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_not_but_never_raise(data: bytes) -> None:
    subscribed_topics(data)


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5), st.data())
def test_a_subscription_cut_short_is_none(topics: list[str], data: st.DataObject) -> None:
    whole = encoded(topics)
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert subscribed_topics(whole[:cut]) is None
