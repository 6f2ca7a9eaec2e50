"""Fetch sessions, row by row of their table."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.data.fetch_session import (
    EVICTABLE_AFTER_MS,
    INT32_MAX,
    SWEEP_MS,
    FetchContext,
    FetchSession,
    FetchSessions,
    SessionError,
)
from moldau.core.errors import ErrorCode
from moldau.protocol.fetch import FetchedPartition, FetchPartition, FetchRequest

TOPIC = b"orders"


def request(
    session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = (), offset: int = 0
) -> FetchRequest:
    wanted = [FetchPartition(index, -1, offset, -1, -1, 1000) for index in partitions]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[(TOPIC, wanted)] if wanted else [],
        forgotten=[(TOPIC, list(forgotten))] if forgotten else [],
    )


class Story:
    """A reader and the broker's sessions."""

    def __init__(self, slots: int = 1000) -> None:
        ids = count(100)
        self.sessions = FetchSessions(slots, random_id=lambda: next(ids))
        self.now_ms = 0
        self.version = 11

    def begin(self, asked: FetchRequest) -> FetchContext:
        context = self.sessions.begin(asked, self.version, self.now_ms)
        assert isinstance(context, FetchContext)
        return context

    def error(self, asked: FetchRequest) -> ErrorCode:
        context = self.sessions.begin(asked, self.version, self.now_ms)
        assert isinstance(context, SessionError)
        return context.code

    def ask(self, asked: FetchRequest, **news: dict[int, dict[str, object]]) -> tuple[int, list[int]]:
        """Answer with high watermark 10 everywhere, and what `news` says differently of a partition."""
        context = self.begin(asked)
        answered: list[tuple[bytes, FetchedPartition[object]]] = []  # type: ignore[type-var]
        for topic, wanted in context.wanted:
            values: dict[str, object] = {"high_watermark": 10} | news.get("news", {}).get(wanted.partition, {})
            answered.append((topic, FetchedPartition(wanted.partition, **values)))  # type: ignore[arg-type]
        told = context.answer(answered)
        return context.session_id, [partition.partition for _, partition in told]


def test_a_fetch_without_session_names_everything() -> None:
    story = Story()
    assert story.ask(request(0, -1, 0, 1)) == (0, [0, 1])
    assert len(story.sessions) == 0


def test_a_session_is_opened_when_asked_for() -> None:
    story = Story()
    assert story.ask(request(0, 0, 0, 1)) == (100, [0, 1])
    assert (len(story.sessions), story.sessions.partitions) == (1, 2)


def test_a_session_names_only_news() -> None:
    story = Story()
    story.ask(request(0, 0, 0, 1, 2, 3))
    assert story.ask(request(100, 1)) == (100, [])
    news: dict[int, dict[str, object]] = {
        0: {"records": b"x"},
        1: {"high_watermark": 11},
        2: {"log_start_offset": 5},
    }
    assert story.ask(request(100, 2), news=news)[1] == [0, 1, 2]


@pytest.mark.parametrize(
    "news",
    [{"last_stable_offset": 3}, {"preferred_read_replica": 2}, {"diverging_epoch": (1, 2)}, {"error_code": 6}],
)
def test_other_news_are_told_too(news: dict[str, object]) -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    assert story.ask(request(100, 1), news={0: news})[1] == [0]


def test_the_end_of_an_error_is_told() -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    story.ask(request(100, 1), news={0: {"error_code": 6}})
    assert story.ask(request(100, 2))[1] == [0]
    assert story.ask(request(100, 3))[1] == []


def test_partitions_are_added_changed_and_forgotten() -> None:
    story = Story()
    story.ask(request(0, 0, 0, 1))
    context = story.begin(request(100, 1, 1, 2, forgotten=(0,), offset=7))
    assert [(wanted.partition, wanted.fetch_offset) for _, wanted in context.wanted] == [(1, 7), (2, 7)]


def test_who_got_records_goes_to_the_end_of_the_line() -> None:
    story = Story()
    story.ask(request(0, 0, 0, 1, 2))
    story.ask(request(100, 1), news={0: {"records": b"x"}})
    assert [wanted.partition for _, wanted in story.begin(request(100, 2)).wanted] == [1, 2, 0]


def test_a_wrong_epoch_and_an_unknown_session_are_errors() -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    assert story.error(request(100, 2)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert story.error(request(7, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix() -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    story.version = 13
    assert story.error(request(100, 1)) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_is_closed_or_exchanged() -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    assert story.ask(request(100, 0, 0)) == (101, [0])
    assert story.ask(request(101, -1, 0)) == (0, [0])
    assert len(story.sessions) == 0


def test_a_session_without_partitions_ends() -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    assert story.ask(request(100, 1, forgotten=(0,))) == (0, [])
    assert len(story.sessions) == 0


def test_epochs_wrap_to_one() -> None:
    story = Story()
    story.ask(request(0, 0, 0))
    next(iter(story.sessions)).next_epoch = INT32_MAX
    story.ask(request(100, INT32_MAX))
    assert story.ask(request(100, 1)) == (100, [])


def test_without_room_there_is_no_session() -> None:
    story = Story(slots=1)
    story.ask(request(0, 0, 0))
    assert story.ask(request(0, 0, 0)) == (0, [0])


def test_an_unused_session_makes_room() -> None:
    story = Story(slots=1)
    story.ask(request(0, 0, 0))
    story.now_ms = EVICTABLE_AFTER_MS + 1
    assert story.ask(request(0, 0, 0)) == (101, [0])
    assert story.sessions.evictions == 1


def test_a_larger_session_replaces_a_smaller_old_one_still_in_use() -> None:
    story = Story(slots=1)
    story.ask(request(0, 0, 0))
    story.now_ms = EVICTABLE_AFTER_MS + 1
    story.ask(request(100, 1))
    assert story.ask(request(0, 0, 0)) == (0, [0])
    assert story.ask(request(0, 0, 0, 1)) == (101, [0, 1])


def test_a_follower_comes_before_consumers() -> None:
    story = Story(slots=1)
    story.ask(request(0, 0, 0, 1, 2))
    follower = request(0, 0, 0)
    follower.replica_id = 2
    assert story.ask(follower) == (101, [0])
    assert story.ask(request(0, 0, 0, 1, 2)) == (0, [0, 1, 2])


# --- partitions without news are watched, not read -----------------------------------------------------


class Watched(SimpleNamespace):
    """A partition that tells those who wait for it."""

    __hash__ = object.__hash__

    def __init__(self) -> None:
        super().__init__(waiting=set())

    def mark(self) -> dict[Any, None]:
        woken: dict[Any, None] = {}
        for waiter in tuple(self.waiting):
            waiter.on_mark(self, woken)
        return woken


def watching(story: Story, *numbers: int) -> tuple[FetchSession, list[Watched]]:
    """A session whose partitions are all watched."""
    story.ask(request(0, 0, *numbers))
    (session,) = story.sessions
    partitions = [Watched() for _ in numbers]
    for number, partition in zip(numbers, partitions, strict=True):
        session.watch(TOPIC, number, partition)
    return session, partitions


def numbers_of(wanted: list[tuple[bytes, FetchPartition]]) -> list[int]:
    return [one.partition for _, one in wanted]


def test_a_fetch_reads_what_something_happened_to() -> None:
    story = Story()
    _, partitions = watching(story, 0, 1, 2)
    assert story.begin(request(100, 1)).wanted == []
    partitions[1].mark()
    assert numbers_of(story.begin(request(100, 2)).wanted) == [1]
    # It was read and has to be watched again to rest.
    assert partitions[1].waiting == set()
    assert numbers_of(story.begin(request(100, 3)).wanted) == [1]


def test_what_a_request_names_is_read() -> None:
    story = Story()
    watching(story, 0, 1, 2)
    assert numbers_of(story.begin(request(100, 1, 2)).wanted) == [2]


def test_a_waiting_fetch_is_woken_and_reads_what_became_ready() -> None:
    story = Story()
    session, partitions = watching(story, 0, 1)
    context = story.begin(request(100, 1))
    fetch: Any = object()
    session.parked.add(fetch)
    assert partitions[0].mark() == {fetch: None}
    assert numbers_of(context.newly_ready()) == [0]
    assert context.newly_ready() == []


def test_from_time_to_time_everything_is_read() -> None:
    story = Story()
    watching(story, 0, 1)
    story.now_ms = SWEEP_MS - 1
    assert story.begin(request(100, 1)).wanted == []
    story.now_ms = SWEEP_MS
    assert numbers_of(story.begin(request(100, 2)).wanted) == [0, 1]


def test_a_forgotten_partition_and_an_ended_session_are_not_woken() -> None:
    story = Story()
    _, partitions = watching(story, 0, 1)
    story.begin(request(100, 1, forgotten=(0,)))
    partitions[0].mark()
    assert story.begin(request(100, 2)).wanted == []
    story.begin(request(100, -1, 5))
    assert partitions[1].waiting == set()
