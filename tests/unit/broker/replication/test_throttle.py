"""The rate of throttled replication, over any sequence of batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.replication.throttle import RateLimit


@given(
    rate=st.integers(1_000, 1_000_000),
    batches=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 100_000)), min_size=1, max_size=60),
)
def test_no_more_than_the_rate_a_second_and_one_batch_passes(rate: int, batches: list[tuple[int, int]]) -> None:
    limit, now_ms, sent = RateLimit(), 0, 0
    for pause_ms, size in batches:
        now_ms += pause_ms
        if not limit.pause_ms(rate, now_ms):
            assert sent <= rate * (now_ms / 1000 + 1)
            limit.use(size)
            sent += size


def test_after_a_pause_it_goes_on() -> None:
    limit = RateLimit()
    assert not limit.pause_ms(1000, 0)
    limit.use(3000)
    assert limit.pause_ms(1000, 1000) == 1001
    assert limit.pause_ms(1000, 2000) == 1
    assert not limit.pause_ms(1000, 2001)
