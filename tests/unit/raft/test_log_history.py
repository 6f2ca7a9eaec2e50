"""What the core knows of its log is what a list of records says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.raft.log_history import UNKNOWN_EPOCH, EpochEnd, LogHistory, SnapshotId

STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.just("truncate"), st.floats(0, 1), st.just(0)),
    st.tuples(st.just("trim"), st.floats(0, 1), st.just(0)),
)


@settings(deadline=None)
@given(st.lists(STEP, max_size=20))
def test_a_history_agrees_with_a_list_of_epochs(steps: list[tuple[str, float, int]]) -> None:
    history = LogHistory()
    epochs: list[int] = []
    start, epoch = 0, 1
    for what, size, step in steps:
        if what == "append":
            epoch += step
            epochs += [epoch] * int(size)
            history.append(len(epochs) - 1, epoch)
        elif what == "truncate":
            end = start + int(size * (len(epochs) - start))
            del epochs[end:]
            history.truncate(end)
        else:
            start += int(size * (len(epochs) - start))
            history.trim(start)
        _check(history, start, epochs)


def _check(history: LogHistory, start: int, epochs: list[int]) -> None:
    assert (history.start_offset, history.end_offset) == (start, len(epochs))
    for offset in range(start, len(epochs) + 1):
        before = epochs[offset - 1] if offset else 0
        assert history.epoch_before(offset) == before
        assert history.is_prefix(offset, before)
        assert not history.is_prefix(offset, before + 1)
    assert not history.is_prefix(start - 1, history.start_epoch)
    assert not history.is_prefix(len(epochs) + 1, history.last_epoch)
    kept = epochs[start:]
    assert history.last_epoch == (epochs[-1] if epochs else 0)
    ends = {epoch: start + index + 1 for index, epoch in enumerate(kept)}
    assert {epoch: history.end_of(epoch) for epoch in ends} == {one: EpochEnd(one, end) for one, end in ends.items()}


def test_a_log_begins_anew_behind_a_snapshot() -> None:
    history = LogHistory(end_offset=5, epochs=[(1, 0)])
    history.start_at(SnapshotId(9, 4))
    assert (history.start_offset, history.end_offset, history.last_epoch, history.epochs) == (9, 9, 4, [])
    assert history.is_prefix(9, 4)
    assert history.end_of(6) == EpochEnd(4, 9)


def test_a_log_whose_begin_is_unknown_is_nobodys_continuation_there() -> None:
    history = LogHistory(start_offset=5, start_epoch=UNKNOWN_EPOCH, end_offset=8, epochs=[(3, 2)])
    assert not any(history.is_prefix(5, epoch) for epoch in range(5))
    assert history.is_prefix(6, 3)
