"""Whether a metadata log may be believed: pure."""

from __future__ import annotations

import uuid

import pytest

from moldau.controller.image import MetadataImage, TopicImage
from moldau.controller.metadata_loss import forgotten_cluster, metadata_loss, recorded_end
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


@pytest.mark.parametrize(
    ("known_end", "offset", "topics", "folders", "is_forgotten"),
    [
        (100, 20, set(), ["orders-0"], True),
        (100, 20, {"other"}, ["orders-0", "orders-1"], True),
        (0, 20, set(), ["orders-0"], True),
        (100, 120, set(), ["orders-0"], False),
        (100, 20, {"orders"}, ["orders-0"], False),
        (0, 20, {"other"}, ["orders-0"], False),
        (100, 20, set(), [], False),
    ],
)
def test_a_cluster_that_was_begun_anew_is_told_from_one_whose_topics_were_deleted(
    known_end: int, offset: int, topics: set[str], folders: list[str], is_forgotten: bool
) -> None:
    image = MetadataImage(offset=offset, topics={name: TopicImage(name, uuid.uuid4(), {}) for name in topics})
    problem = forgotten_cluster(image, known_end, folders)
    assert (problem is not None) == is_forgotten
    if problem is not None:
        assert "orders-0" in problem
