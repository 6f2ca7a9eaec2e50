"""When a follower counts as caught up, with fetches that name only partitions that changed."""

from __future__ import annotations

from types import SimpleNamespace

from moldau.broker.replication.leading import Leading

LAG_MS = 1_000
ME, OTHER = 1, 2


def leading() -> Leading:
    return Leading(ME, (ME, OTHER), (ME, OTHER), 0, 0)


def wish_at(state: Leading, now_ms: int, *, leader_end: int) -> object:
    return state.wish(leader_end, 0, now_ms, LAG_MS, lambda node_id, epoch: True)


def test_a_resting_follower_is_caught_up_as_of_its_last_fetch_in_its_session() -> None:
    state, session = leading(), SimpleNamespace(last_used_ms=0)
    state.on_fetch(OTHER, 10, 5, leader_end=10, now_ms=100)
    state.rest(OTHER, session)
    # It keeps fetching without a word of this partition; then there is more.
    session.last_used_ms = 9_000
    state.on_append()
    session.last_used_ms = 20_000
    assert wish_at(state, 9_000 + LAG_MS, leader_end=11) is None
    assert wish_at(state, 9_001 + LAG_MS, leader_end=11) is not None


def test_an_append_that_is_not_published_yet_does_not_make_it_late() -> None:
    state, session = leading(), SimpleNamespace(last_used_ms=9_000)
    state.on_fetch(OTHER, 10, 5, leader_end=10, now_ms=100)
    state.rest(OTHER, session)
    assert wish_at(state, 9_500, leader_end=11) is None


def test_it_may_rest_again_and_again() -> None:
    state, session = leading(), SimpleNamespace(last_used_ms=0)
    for now_ms in range(0, 50_000, 1_000):
        session.last_used_ms = now_ms
        state.on_fetch(OTHER, now_ms, 5, leader_end=now_ms, now_ms=now_ms)
        state.rest(OTHER, session)
        state.rest(OTHER, session)
        if now_ms % 3_000 == 0:
            state.on_append()
    assert wish_at(state, 49_000, leader_end=49_001) is None
    assert state.end_offset_of(OTHER) == 49_000


def test_a_follower_that_has_not_fetched_in_this_epoch_does_not_rest() -> None:
    state, session = leading(), SimpleNamespace(last_used_ms=50_000)
    state.rest(OTHER, session)
    assert wish_at(state, 2_000, leader_end=1) is not None
