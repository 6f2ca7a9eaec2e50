"""Leader epochs: where each began, and what followers learn from it."""

from __future__ import annotations

import pytest

from moldau.log.leader_epochs import LeaderEpochs


def test_text_form_is_kafkas() -> None:
    assert LeaderEpochs().render() == "0\n0\n"
    epochs = LeaderEpochs([(0, 0), (3, 120)])
    assert epochs.render() == "0\n2\n0 0\n3 120\n"
    assert LeaderEpochs.parse(epochs.render()).entries == [(0, 0), (3, 120)]


@pytest.mark.parametrize("text", ["", "0\n", "1\n0\n", "0\n2\n0 0\n", "0\n1\nx y\n"])
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        LeaderEpochs.parse(text)


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    epochs = LeaderEpochs()
    assert epochs.assign(1, 50)
    assert epochs.assign(2, 50)
    assert not epochs.assign(2, 60)
    assert epochs.entries == [(2, 50)]


def test_end_offset_of_an_epoch() -> None:
    epochs = LeaderEpochs([(1, 0), (3, 100), (4, 150)])
    assert epochs.end_offset_of(1, 200) == (1, 100)
    assert epochs.end_offset_of(2, 200) == (1, 100)
    assert epochs.end_offset_of(4, 200) == (4, 200)
    assert epochs.end_offset_of(5, 200) == (-1, -1)
    assert epochs.end_offset_of(0, 200) == (0, 0)
    assert LeaderEpochs().end_offset_of(0, 200) == (-1, -1)


def test_epoch_of_an_offset() -> None:
    epochs = LeaderEpochs([(1, 10), (3, 100)])
    assert [epochs.epoch_of(offset) for offset in (9, 10, 99, 100)] == [-1, 1, 1, 3]


def test_truncation_at_both_ends() -> None:
    epochs = LeaderEpochs([(1, 0), (3, 100), (4, 150)])
    assert epochs.truncate_end(150)
    assert epochs.entries == [(1, 0), (3, 100)]
    assert epochs.truncate_start(120)
    assert epochs.entries == [(3, 120)]
    assert not epochs.truncate_start(50)
