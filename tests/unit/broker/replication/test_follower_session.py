"""A follower's session names only what changed, and a leader that reads it knows all that is wanted."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.data.fetch_session import FetchContext, FetchSessions
from moldau.broker.replication.follower_session import FollowerSession, SessionRequest
from moldau.protocol.fetch import FetchedPartition, FetchPartition, FetchRequest

TOPIC = b"t" * 16
Key = tuple[bytes, int]


def at(index: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(index, 1, offset, -1, 0, 1000)


class Follower:
    """What a follower wants now, by partition number."""

    def __init__(self, *numbers: int) -> None:
        self.session = FollowerSession()
        self.offsets = dict.fromkeys(numbers, 0)
        self.session.touch((TOPIC, one) for one in numbers)

    def want(self, number: int, offset: int | None) -> None:
        if offset is None:
            self.offsets.pop(number, None)
        else:
            self.offsets[number] = offset
        self.session.touch([(TOPIC, number)])

    def request(self) -> SessionRequest | None:
        def wanted(key: Key) -> FetchPartition | None:
            offset = self.offsets.get(key[1])
            return None if offset is None else at(key[1], offset)

        return self.session.next_request(wanted)


def test_the_first_request_names_everything_and_the_next_ones_what_changed() -> None:
    follower = Follower(0, 1, 2)
    assert follower.request() == SessionRequest(0, 0, [(TOPIC, [at(0), at(1), at(2)])], [])
    follower.session.on_response(7, [(TOPIC, 1)])
    follower.offsets[1] = 10
    assert follower.request() == SessionRequest(7, 1, [(TOPIC, [at(1, 10)])], [])
    follower.session.on_response(7, [])
    assert follower.request() == SessionRequest(7, 2, [], [])


def test_a_partition_that_is_not_wanted_now_is_forgotten_and_taken_up_again() -> None:
    follower = Follower(0, 1)
    follower.request()
    follower.session.on_response(7, [])
    follower.want(1, None)
    assert follower.request() == SessionRequest(7, 1, [], [(TOPIC, [1])])
    follower.session.on_response(7, [])
    follower.want(1, 0)
    assert follower.request() == SessionRequest(7, 2, [(TOPIC, [at(1)])], [])


def test_without_a_session_every_request_is_full() -> None:
    follower = Follower(0, 1)
    follower.request()
    follower.session.on_response(0, [])
    assert follower.request() == SessionRequest(0, 0, [(TOPIC, [at(0), at(1)])], [])


def test_nothing_wanted_is_no_request() -> None:
    follower = Follower(0)
    follower.want(0, None)
    assert follower.request() is None
    assert len(follower.session) == 0


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.integers(0, 5), st.none() | st.integers(0, 3), max_size=4), st.integers(0, 5)),
        max_size=12,
    )
)
def test_the_leader_knows_what_the_follower_wants(
    rounds: list[tuple[dict[int, int | None], int]],
) -> None:
    """Each round changes what is wanted; a die tells when the leader loses its sessions."""
    ids = count(10)
    sessions = FetchSessions(random_id=lambda: next(ids))
    follower = Follower(0, 1)
    for changes, die in rounds:
        for number, offset in changes.items():
            follower.want(number, offset)
        news = follower.request()
        if news is None:
            assert not follower.offsets
            continue
        if die == 0:
            sessions = FetchSessions(random_id=lambda: next(ids))
        request = FetchRequest(1, session_id=news.session_id, session_epoch=news.session_epoch)
        request.topics, request.forgotten = news.topics, news.forgotten
        context = sessions.begin(request, 17, 0)
        if not isinstance(context, FetchContext):
            follower.session.start_over([(TOPIC, one) for one in follower.offsets])
            continue
        answered = [(topic, FetchedPartition(one.partition, high_watermark=1)) for topic, one in context.wanted]
        told = context.answer(answered)  # type: ignore[type-var]
        follower.session.on_response(context.session_id, [(topic, one.partition) for topic, one in told])
        (session,) = (one for one in sessions if one.session_id == context.session_id)
        assert {one.wanted.partition: one.wanted.fetch_offset for one in session.known.values()} == follower.offsets
