"""Committed offsets: who may commit, what is told of them, and what deletes them."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.classic_core import GROUP, Harness

from moldau.coordinator.group.classic.requests import LeavingMember
from moldau.coordinator.group.group_core import CommitRequest
from moldau.coordinator.group.offsets import OffsetToCommit, commit_record
from moldau.coordinator.runtime.outcome import Producer
from moldau.core.errors import ErrorCode

HOUR_MS = 3_600_000


@pytest.fixture
def groups() -> Harness:
    return Harness()


def at(partition: int, offset: int, **more: object) -> OffsetToCommit:
    return OffsetToCommit("t", partition, offset)._replace(**more)


def test_offsets_without_membership_make_a_group_of_nobody(groups: Harness) -> None:
    assert groups.commit(at(0, 5), at(1, 6)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert groups.committed(0, 1, 2) == [5, 6, -1]
    assert (groups.group.state_name, groups.group.protocol_type_name) == ("Empty", "")


def test_offsets_survive_a_restart(groups: Harness) -> None:
    groups.commit(at(0, 5, leader_epoch=3, metadata="note"))
    groups.commit(at(0, 7))
    assert groups.restarted().committed(0) == [7]


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_an_unknown_group_is_told_so_by_version(groups: Harness, version: int, error: ErrorCode) -> None:
    assert groups.commit(at(0, 5), member_id="m", epoch=1, api_version=version) is error
    assert not groups.core.groups


def test_members_commit_in_their_generation_only(groups: Harness) -> None:
    (member_id,) = groups.stable()
    assert groups.commit(at(0, 5), member_id=member_id, epoch=1) == [ErrorCode.NONE]
    assert groups.commit(at(0, 6), member_id=member_id, epoch=0) is ErrorCode.ILLEGAL_GENERATION
    assert groups.commit(at(0, 6), member_id="stranger", epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit(at(0, 6)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.committed(0) == [5]


def test_the_old_generation_commits_while_members_gather_and_nobody_after(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    groups.begin_join(leader)
    assert groups.commit(at(0, 5), member_id=follower, epoch=2) == [ErrorCode.NONE]
    groups.begin_join(follower)
    assert groups.commit(at(0, 6), member_id=follower, epoch=3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_metadata_that_is_too_long_is_refused_alone(groups: Harness) -> None:
    errors = groups.commit(at(0, 5, metadata="x" * 4097), at(1, 6, metadata="x" * 4096))
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert groups.committed(0, 1) == [-1, 6]


def test_a_commit_that_cannot_be_written_changes_nothing(groups: Harness) -> None:
    groups.commit(at(0, 5))
    groups.break_disk()
    assert groups.commit(at(0, 6)) is ErrorCode.NOT_COORDINATOR
    assert groups.committed(0) == [5]


def test_all_offsets_of_a_group(groups: Harness) -> None:
    groups.commit(at(0, 5), at(3, 8))
    reply = groups.ask(lambda core, ticket, now: core.fetch_offsets(GROUP, None, ticket)).reply
    assert [(one.topic, one.partition, one.offset) for one in reply.offsets] == [("t", 0, 5), ("t", 3, 8)]


def test_an_unknown_group_has_no_offsets_and_no_error(groups: Harness) -> None:
    assert groups.committed(0) == [-1]


# --- transactions ---------------------------------------------------------------------------------------


def commit_in_transaction(groups: Harness, producer: Producer, *offsets: OffsetToCommit) -> None:
    request = CommitRequest(GROUP, "", None, -1, offsets, 3, producer)
    assert groups.ask(lambda core, ticket, now: core.commit(request, ticket, now)).reply == [ErrorCode.NONE]


def test_offsets_of_a_transaction_count_from_its_commit_on(groups: Harness) -> None:
    groups.commit(at(0, 1))
    commit_in_transaction(groups, Producer(7, 0), at(0, 5))
    assert groups.committed(0) == [1]
    assert groups.committed(0, require_stable=True) == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    groups.shard.marker_appended(7, 0, True)
    assert groups.committed(0, require_stable=True) == [5]


def test_offsets_of_an_aborted_transaction_never_count(groups: Harness) -> None:
    commit_in_transaction(groups, Producer(7, 0), at(0, 5))
    groups.shard.marker_appended(7, 0, False)
    assert groups.committed(0, require_stable=True) == [-1]


def test_a_plain_commit_after_a_transactional_one_is_the_newer_word(groups: Harness) -> None:
    commit_in_transaction(
        groups,
        Producer(7, 0),
        at(0, 5),
    )
    groups.commit(at(0, 9))
    groups.shard.marker_appended(7, 0, True)
    assert groups.committed(0) == [9]


def test_a_group_of_an_open_transaction_alone_is_kept_through_a_restart(groups: Harness) -> None:
    record = commit_record(GROUP, at(0, 5), 0)
    groups.core.replay(record.key, record.value, Producer(7, 0))
    groups.core.on_loaded(groups.now_ms)
    groups.shard.marker_appended(7, 0, True)
    assert groups.committed(0) == [5]
    assert set(groups.core.groups) == {GROUP}


# --- deletion -------------------------------------------------------------------------------------------


def delete_offsets(groups: Harness, *partitions: int) -> object:
    places = [("t", number) for number in partitions]
    return groups.ask(lambda core, ticket, now: core.delete_offsets(GROUP, places, ticket)).reply


def delete_group(groups: Harness, group_id: str = GROUP) -> object:
    return groups.ask(lambda core, ticket, now: core.delete_group(group_id, ticket)).reply


def test_single_offsets_are_deleted(groups: Harness) -> None:
    groups.commit(at(0, 5), at(1, 6))
    assert delete_offsets(groups, 0, 4) == [ErrorCode.NONE, ErrorCode.NONE]
    assert groups.restarted().committed(0, 1) == [-1, 6]


def test_offsets_of_a_topic_in_use_are_kept(groups: Harness) -> None:
    (member_id,) = groups.stable()
    groups.commit(at(0, 5), member_id=member_id, epoch=1)
    assert delete_offsets(groups, 0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert groups.committed(0) == [5]


def test_offsets_of_busy_groups_of_another_kind_are_kept(groups: Harness) -> None:
    groups.join(protocol_type="connect")
    assert delete_offsets(groups, 0) is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_no_group_cannot_be_deleted(groups: Harness) -> None:
    assert delete_offsets(groups, 0) is ErrorCode.GROUP_ID_NOT_FOUND


def test_only_groups_without_members_are_deleted(groups: Harness) -> None:
    (member_id,) = groups.stable()
    groups.commit(at(0, 5), member_id=member_id, epoch=1)
    assert delete_group(groups) is ErrorCode.NON_EMPTY_GROUP
    groups.leave(LeavingMember(member_id))
    assert delete_group(groups) is ErrorCode.NONE
    assert delete_group(groups) is ErrorCode.GROUP_ID_NOT_FOUND
    assert delete_group(groups, "") is ErrorCode.INVALID_GROUP_ID
    again = groups.restarted()
    assert not again.core.groups
    assert again.committed(0) == [-1]


def test_offsets_in_deleted_topics_go_with_them(groups: Harness) -> None:
    groups.commit(at(0, 5), OffsetToCommit("other", 0, 1))
    groups.shard.carry_out(groups.core.forget_topics({"t"}))
    assert set(groups.restarted().core.offsets.of(GROUP)) == {("other", 0)}


# --- expiry ---------------------------------------------------------------------------------------------


def test_offsets_of_a_group_of_nobody_expire_after_their_commit() -> None:
    groups = Harness(offsets_retention_minutes=60)
    groups.commit(at(0, 5))
    groups.advance(HOUR_MS - 600_000)
    groups.commit(at(1, 6))
    groups.advance(600_000)
    assert groups.committed(0, 1) == [-1, 6]
    groups.advance(HOUR_MS)
    assert not groups.core.groups
    assert not groups.restarted().core.groups


def test_offsets_of_an_empty_group_expire_after_the_last_member_left() -> None:
    groups = Harness(offsets_retention_minutes=60)
    (member_id,) = groups.stable()
    groups.commit(at(0, 5), member_id=member_id, epoch=1)
    for _ in range(1000):
        groups.advance(9_000)
        groups.heartbeat(member_id)
    assert groups.committed(0) == [5]
    groups.leave(LeavingMember(member_id))
    groups.advance(HOUR_MS - 600_000)
    assert groups.committed(0) == [5]
    groups.advance(2 * 600_000)
    assert not groups.core.groups


def test_offsets_of_topics_nobody_subscribes_to_any_more_expire() -> None:
    groups = Harness(offsets_retention_minutes=60)
    (member_id,) = groups.stable()
    groups.commit(at(0, 5), OffsetToCommit("left", 0, 1), member_id=member_id, epoch=1)
    for _ in range(500):
        groups.advance(9_000)
        groups.heartbeat(member_id)
    assert set(groups.core.offsets.of(GROUP)) == {("t", 0)}


def test_an_offset_may_have_a_time_of_its_own() -> None:
    groups = Harness()
    groups.commit(at(0, 5, expire_ms=groups.now_ms + 1_000_000), at(1, 6))
    groups.advance(600_000)
    assert groups.committed(0, 1) == [5, 6]
    groups = groups.restarted()
    groups.advance(600_000)
    assert groups.committed(0, 1) == [-1, 6]


def test_many_offsets_expire_in_portions() -> None:
    groups = Harness(offsets_retention_minutes=1)
    for number in range(60):
        request = CommitRequest(f"g{number}", "", None, -1, tuple(at(n, 1) for n in range(50)), 8)
        groups.ask(lambda core, ticket, now, request=request: core.commit(request, ticket, now))
    groups.advance(600_000)
    assert 0 < len(groups.core.groups) < 60
    groups.advance(10)
    assert not groups.core.groups
    assert len(groups.core.offsets) == 0


# --- records of other releases --------------------------------------------------------------------------


def test_offsets_that_apache_kafka_wrote_are_found(groups: Harness) -> None:
    """The newest value version has its topic's id; the oldest key type has another number."""
    newest = bytes.fromhex("000400000000000000140000000001000001a1e09fe642010010495192f1fdcd4b87a4fbd2eecf4d6fdf")
    groups.core.replay(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", newest)
    groups.core.replay(b"\x00\x00\x00\x01g\x00\x01t\x00\x00\x00\x01", newest)
    assert groups.committed(0, 1) == [20, 20]


@pytest.mark.parametrize("key", [b"", b"\x00\x01\x00\x09g", b"\x00\x63??", b"\x00\x02\x00\x01g"])
def test_records_that_nobody_can_read_are_passed_over(groups: Harness, key: bytes) -> None:
    groups.core.replay(key, b"\x00\x7f")
    assert not groups.core.groups
