"""Whether a metadata log may be believed: pure."""

from __future__ import annotations

import pytest

from moldau.controller.metadata_loss import metadata_loss, recorded_end
from moldau.log.directories.manifest import Manifest


@pytest.mark.parametrize(
    ("end_offset", "recorded", "partitions", "words"),
    [
        (0, 0, [], None),
        (40, 0, ["orders-0"], None),
        (40, 40, ["orders-0"], None),
        (41, 40, ["orders-0"], None),
        (39, 40, [], "ends at offset 39, but everything below 40 was on disk"),
        (0, 40, [], "ends at offset 0, but everything below 40 was on disk"),
        (0, 0, ["b-0", "a-0"], r"is missing or empty, .* hold 2 partitions \(a-0, b-0\)"),
        (0, 0, ["b-0", "a-0", "d-0", "c-0"], r"hold 4 partitions \(a-0, b-0, c-0, \.\.\.\)"),
    ],
)
def test_a_log_that_went_backwards_or_is_empty_beside_partitions_is_a_loss(
    end_offset: int, recorded: int, partitions: list[str], words: str | None
) -> None:
    problem = metadata_loss("/data/meta", end_offset=end_offset, recorded_end=recorded, partitions=partitions)
    if words is None:
        assert problem is None
    else:
        assert problem is not None
        with pytest.raises(AssertionError, match=words):
            raise AssertionError(problem)
        assert "/data/meta" in problem
        assert "Restore this folder from a backup" in problem


def test_the_newest_manifest_that_still_counts_is_asked() -> None:
    manifests = [Manifest(metadata_epoch=3, metadata_end_offset=30), Manifest(metadata_epoch=5, metadata_end_offset=50)]
    assert [recorded_end(manifests, epoch) for epoch in (3, 4, 5, 6)] == [50, 50, 50, 0]
    assert recorded_end([], 0) == 0
