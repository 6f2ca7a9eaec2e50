from __future__ import annotations

import pytest
from tests.unit.pipeline.spark.hosted.state_in_memory import StateInMemory

from moldau.pipeline.spark.hosted.state import Backend, GroupState


@pytest.fixture
def channel() -> StateInMemory:
    return StateInMemory()


def attached(channel: StateInMemory, keys: list[bytes], prefix: bytes = b"", *, is_new: bool = False) -> Backend:
    backend = Backend("store", prefix, filled=() if is_new else {prefix + b"store"})
    backend.attach(GroupState(channel, lambda: keys))  # type: ignore[arg-type]
    return backend


def written(channel: StateInMemory, backend: Backend) -> dict[bytes, bytes | None]:
    changes = backend.drain_changes()
    channel.write(backend.entries(changes))
    return changes


def test_nothing_reaches_spark_before_the_batch_ends(channel: StateInMemory) -> None:
    backend = attached(channel, [])
    backend.put(b"a", b"1")
    backend.put(b"b", b"2")
    backend.delete(b"b")

    assert (backend.get(b"a"), backend.get(b"b")) == (b"1", None)
    assert channel.entries == {}
    assert written(channel, backend) == {b"a": b"1", b"b": None}
    assert channel.entries == {("store", b"a"): b"1"}


def test_the_key_of_one_record_brings_those_of_all(channel: StateInMemory) -> None:
    channel.entries.update({("store", b"a"): b"1", ("store", b"c"): b"3"})
    backend = attached(channel, [b"a", b"b", b"a", b"c"])

    assert [backend.get(key) for key in (b"a", b"b", b"c")] == [b"1", None, b"3"]
    assert channel.asked == [[b"a", b"b", b"c"]]


def test_a_key_that_no_record_has_is_asked_for_alone(channel: StateInMemory) -> None:
    channel.entries["store", b"window-1"] = b"x"
    backend = attached(channel, [b"a", b"b"])

    assert backend.get(b"window-1") == b"x"
    assert channel.asked == [[b"window-1"]]


def test_what_was_written_is_not_read_from_what_was_read_ahead(channel: StateInMemory) -> None:
    channel.entries.update({("store", b"a"): b"1", ("store", b"b"): b"2"})
    backend = attached(channel, [b"a", b"b"])
    backend.get(b"a")
    backend.put(b"b", b"new")

    assert backend.get(b"b") == b"new"


def test_all_entries_are_those_of_spark_with_the_changes_of_the_batch(channel: StateInMemory) -> None:
    channel.entries.update({("store", b"a"): b"1", ("store", b"b"): b"2", ("other", b"x"): b"9"})
    backend = attached(channel, [])
    backend.delete(b"a")
    backend.put(b"c", b"3")

    assert dict(backend.items()) == {b"b": b"2", b"c": b"3"}


def test_tasks_that_share_a_state_do_not_see_each_other(channel: StateInMemory) -> None:
    one, other = attached(channel, [b"k"], b"1/"), attached(channel, [b"k"], b"2/")
    one.put(b"k", b"one")
    written(channel, one)
    other.put(b"k", b"other")
    written(channel, other)

    assert dict(one.items()) == {b"k": b"one"}
    assert other.get(b"k") == b"other"
    assert set(channel.entries) == {("store", b"1/k"), ("store", b"2/k")}


def test_a_new_batch_forgets_what_the_last_one_left(channel: StateInMemory) -> None:
    backend = attached(channel, [b"a"])
    backend.put(b"a", b"lost")
    backend.attach(GroupState(channel, lambda: [b"a"]))  # type: ignore[arg-type]

    assert backend.get(b"a") is None


def test_a_store_that_nothing_was_put_into_is_not_asked_for(channel: StateInMemory) -> None:
    backend = attached(channel, [b"a"], is_new=True)

    assert (backend.get(b"a"), list(backend.items())) == (None, [])
    assert channel.asked == []
    assert backend.drain_changes() == {}
    assert backend.is_new


def test_a_store_is_asked_for_once_something_was_put_into_it(channel: StateInMemory) -> None:
    backend = attached(channel, [b"a"], is_new=True)
    backend.put(b"a", b"1")
    written(channel, backend)
    backend.attach(GroupState(channel, lambda: [b"a"]))  # type: ignore[arg-type]

    assert not backend.is_new
    assert backend.get(b"a") == b"1"
    assert channel.asked == [[b"a"]]
