"""Whether a partition takes a transaction's marker: once, and not in the place of the next transaction's."""

from __future__ import annotations

import pytest

from moldau.broker.coordination.transaction_markers import CoordinatorFencedError, Marker, check_marker, is_missing
from moldau.core.ids import TopicPartition
from moldau.log.errors import InvalidProducerEpochError
from moldau.log.producer_state import Marker as EndMarker
from moldau.log.producer_state import ProducerStates
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader

PRODUCER = 7
PLACE = TopicPartition("t", 0)


def header(epoch: int, sequence: int) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, TRANSACTIONAL_BIT, 0, 0, 0, PRODUCER, epoch, sequence, 1)


def written(*epochs: int, ended_by: int | None = None) -> ProducerStates:
    """A partition with a batch of each epoch, and perhaps a marker with an epoch and coordinator epoch 3."""
    states = ProducerStates()
    for offset, epoch in enumerate(epochs):
        states.update(header(epoch, 0), offset, 0)
    if ended_by is not None:
        states.complete(header(ended_by, -1), len(epochs), EndMarker(True, 3), 0)
    return states


def marker(epoch: int, *, version: int, coordinator_epoch: int = 3) -> Marker:
    return Marker(PRODUCER, epoch, coordinator_epoch, True, version)


@pytest.mark.parametrize(("version", "epoch"), [(0, 0), (2, 1)])
def test_an_open_transaction_gets_its_marker_once(version: int, epoch: int) -> None:
    assert is_missing(written(0), marker(epoch, version=version))
    assert not is_missing(written(0, ended_by=epoch), marker(epoch, version=version))


def test_a_late_marker_does_not_end_the_next_transaction() -> None:
    states = written(0, ended_by=1)
    states.update(header(1, 0), 2, 0)

    assert not is_missing(states, marker(1, version=2))
    assert is_missing(states, marker(2, version=2))


def test_markers_of_older_epochs_and_coordinators_are_refused() -> None:
    states = written(0, ended_by=1)
    states.update(header(1, 0), 2, 0)

    with pytest.raises(InvalidProducerEpochError):
        check_marker(states, marker(0, version=2), PLACE)
    with pytest.raises(CoordinatorFencedError):
        check_marker(states, marker(2, version=2, coordinator_epoch=2), PLACE)
    check_marker(states, marker(2, version=2), PLACE)
