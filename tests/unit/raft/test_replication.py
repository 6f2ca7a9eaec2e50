"""Fetches: who gets what, what counts as committed, and how a log that went astray comes back."""

from __future__ import annotations

import pytest
from tests.unit.raft.replicas import (
    NOW,
    answer_of,
    committed_leader,
    deliver,
    elected,
    fetched,
    flush,
    key,
    new_core,
    only,
)

from moldau.core.errors import ErrorCode
from moldau.raft.core import NotLeaderError, QuorumCore
from moldau.raft.effects import (
    Answer,
    AppendBatches,
    Claim,
    Commit,
    ElectionState,
    FinishSnapshot,
    Flush,
    Send,
    TruncateLog,
    WriteSnapshot,
)
from moldau.raft.log_history import EpochEnd, LogHistory, SnapshotId
from moldau.raft.messages import (
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    LeaderHint,
)
from moldau.raft.records import Batch
from moldau.raft.replica import QuorumBrokenError
from moldau.raft.roles import Follower, Resigned

EPOCH = 4
OLD_LOG = LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)])


def follower(log: LogHistory | None = None, node_id: int = 1) -> QuorumCore:
    return new_core(node_id, election=ElectionState(EPOCH, 3), log=log)


def reply(**fields: object) -> FetchReply:
    return FetchReply(ErrorCode.NONE, LeaderHint(EPOCH, 3), **fields)  # type: ignore[arg-type]


# --- the leader -------------------------------------------------------------------------------------


def test_nothing_of_an_older_epoch_is_committed_before_a_record_of_the_leaders_own() -> None:
    core = new_core(log=LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)]), election=ElectionState(3), kraft_version=0)
    won = elected(core)
    flush(core, won)
    assert not only(Commit, fetched(core, 2, 10))
    assert core.high_watermark == -1
    effects = fetched(core, 2, 11)
    assert [one.high_watermark for one in only(Commit, effects)] == [11]
    assert [one.epoch for one in only(Claim, effects)] == [core.replica.epoch]


def test_a_leader_counts_itself_only_when_it_has_synced() -> None:
    core = new_core(1, 3, kraft_version=0)
    won = elected(core)
    assert not only(Commit, fetched(core, 2))
    assert [one.high_watermark for one in only(Commit, flush(core, won))] == [1]


def test_a_sync_of_another_epoch_does_not_count() -> None:
    core = new_core(1, 1)
    effects = core.start(NOW)
    assert core.flushed(99, core.replica.epoch - 1, NOW) == []
    assert only(Commit, flush(core, effects))


def test_observers_do_not_count() -> None:
    core = committed_leader(3)
    _, effects = core.append(b"x", 1, core.replica.epoch, NOW)
    flush(core, effects)
    before = core.high_watermark
    fetched(core, 8)
    assert core.high_watermark == before
    fetched(core, 2)
    assert core.high_watermark == before + 1
    view = core.view()
    assert [one.key.id for one in view.voters] == [1, 2, 3]
    assert [one.key.id for one in view.observers] == [8]


def test_a_fetch_waits_for_records_or_for_the_high_watermark() -> None:
    core = committed_leader(3)
    known = core.high_watermark
    assert not only(Answer, fetched(core, 2, max_wait_ms=500, high_watermark=known))
    _, effects = core.append(b"x", 1, core.replica.epoch, NOW)
    assert [(one.ticket, one.read_from) for one in only(Answer, effects)] == [("fetch of 2", known)]
    kinds = [type(one) for one in effects]
    assert kinds.index(AppendBatches) < kinds.index(Flush) < kinds.index(Answer)
    flush(core, effects)
    assert not only(Answer, fetched(core, 8, max_wait_ms=500, high_watermark=known))
    moved = fetched(core, 2, max_wait_ms=500, high_watermark=known)
    assert {one.ticket for one in only(Answer, moved)} == {"fetch of 8", "fetch of 2"}


def test_a_parked_fetch_is_answered_in_the_end() -> None:
    core = committed_leader(3)
    fetched(core, 2, max_wait_ms=10**9, high_watermark=core.high_watermark)
    assert only(Answer, core.on_time(NOW + 500))


@pytest.mark.parametrize(
    ("offset", "epoch", "diverging"),
    [(8, 1, EpochEnd(1, 6)), (7, 2, EpochEnd(1, 6)), (12, 3, EpochEnd(3, 10)), (4, 3, EpochEnd(3, 10))],
)
def test_a_log_that_is_no_beginning_of_the_leaders_diverges(offset: int, epoch: int, diverging: EpochEnd) -> None:
    core = new_core(log=LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)]), election=ElectionState(3), kraft_version=0)
    elected(core)
    request = FetchRequest("c", key(2), core.replica.epoch, offset, epoch)
    answer = answer_of(core.on_request("t", request, NOW))
    assert (answer.error, answer.diverging) == (ErrorCode.NONE, diverging)


def test_a_fetch_is_refused_by_whoever_does_not_lead_and_in_another_epoch() -> None:
    core = committed_leader(3)
    epoch = core.replica.epoch
    for asked, error in ((epoch - 1, ErrorCode.FENCED_LEADER_EPOCH), (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        assert answer_of(core.on_request("t", FetchRequest("c", key(2), asked, 0, 0), NOW)).error is error
    other = FetchRequest("other", key(2), epoch, 0, 0)
    assert answer_of(core.on_request("t", other, NOW)).error is ErrorCode.INCONSISTENT_CLUSTER_ID
    negative = FetchRequest("c", key(2), epoch, -1, 0)
    assert answer_of(core.on_request("t", negative, NOW)).error is ErrorCode.INVALID_REQUEST
    core = follower()
    core.start(NOW)
    answer = answer_of(core.on_request("t", FetchRequest("c", key(2), EPOCH, 0, 0), NOW))
    assert (answer.error, answer.leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)
    assert answer.leader.endpoints[0].host == "host3"


def test_whoever_is_behind_the_leaders_log_gets_its_snapshot() -> None:
    core = committed_leader(3)
    epoch = core.replica.epoch
    for _ in range(5):
        _, effects = core.append(b"x", 1, epoch, NOW)
        flush(core, effects)
    fetched(core, 2)
    snapshot = SnapshotId(6, epoch)
    core.snapshot_saved(snapshot)
    core.log_trimmed(6)
    for offset, last_epoch in ((0, 0), (3, epoch), (6, epoch - 1)):
        request = FetchRequest("c", key(3), epoch, offset, last_epoch)
        assert answer_of(core.on_request("t", request, NOW)).snapshot == snapshot
    assert answer_of(fetched(core, 3, 6)).snapshot is None
    part = FetchSnapshotRequest("c", key(3), epoch, snapshot, 5, 100)
    (answer,) = only(Answer, core.on_request("t", part, NOW))
    assert (answer.read_from, answer.reply.error) == (5, ErrorCode.NONE)
    negative = answer_of(core.on_request("t", part._replace(position=-1), NOW))
    assert negative.error is ErrorCode.POSITION_OUT_OF_RANGE


def test_a_snapshot_of_what_is_not_committed_is_refused() -> None:
    core = committed_leader(3)
    with pytest.raises(QuorumBrokenError):
        core.snapshot_saved(SnapshotId(core.high_watermark + 1, 1))


def test_only_the_leader_of_an_epoch_appends_in_it() -> None:
    core = committed_leader(1)
    with pytest.raises(NotLeaderError):
        core.append(b"x", 1, core.replica.epoch - 1, NOW)
    core.close(NOW)
    assert isinstance(core.replica.role, Resigned)
    with pytest.raises(NotLeaderError):
        core.append(b"x", 1, core.replica.epoch, NOW)


def test_a_leader_goes_on_after_a_failed_append_and_uses_the_offset_again() -> None:
    core = committed_leader(1)
    epoch, end_offset = core.replica.epoch, core.replica.log.end_offset
    core.append(b"x", 2, epoch, NOW)
    assert core.append_failed(end_offset, epoch, NOW) == []
    offset, effects = core.append(b"y", 1, epoch, NOW)
    assert offset == end_offset
    assert only(Commit, flush(core, effects))[0].high_watermark == end_offset + 1


def test_whoever_else_has_to_start_anew_after_a_failed_append() -> None:
    core = follower()
    effects = core.start(NOW)
    deliver(core, effects, reply(batches=(Batch(0, 0, 1, b"x"),)), 3)
    assert core.append_failed(0, 1, NOW) is None
    core = new_core(1, 1)
    core.start(NOW)
    assert core.append_failed(0, core.replica.epoch, NOW) is None


# --- the follower -----------------------------------------------------------------------------------


def test_a_follower_syncs_what_it_appends_before_it_fetches_on() -> None:
    core = follower()
    batches = (Batch(0, 1, 1, b"ab"), Batch(2, 2, EPOCH, b"c"))
    effects = deliver(core, core.start(NOW), reply(high_watermark=2, batches=batches), 3)
    assert [type(one) for one in effects if not isinstance(one, Send) or isinstance(one.request, FetchRequest)] == [
        AppendBatches,
        Flush,
        Commit,
        Send,
    ]
    requests = [one.request for one in only(Send, effects) if isinstance(one.request, FetchRequest)]
    assert [(one.fetch_offset, one.last_fetched_epoch, one.high_watermark) for one in requests] == [(3, EPOCH, 2)]


def test_the_high_watermark_of_a_follower_stays_within_its_log() -> None:
    core = follower()
    deliver(core, core.start(NOW), reply(high_watermark=9, batches=(Batch(0, 0, 1),)), 3)
    assert core.high_watermark == 1


@pytest.mark.parametrize(
    "batch", [Batch(11, 11, 3), Batch(9, 9, 3), Batch(10, 10, 2), Batch(10, 10, EPOCH + 1), Batch(10, 9, 3)]
)
def test_what_does_not_continue_the_log_is_not_appended(batch: Batch) -> None:
    core = follower(LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)]))
    assert not only(AppendBatches, deliver(core, core.start(NOW), reply(batches=(batch,)), 3))


@pytest.mark.parametrize(
    ("diverging", "end_offset"),
    [(EpochEnd(3, 8), 8), (EpochEnd(1, 4), 4), (EpochEnd(2, 9), 6), (EpochEnd(0, 0), 0)],
)
def test_a_diverging_log_is_cut_by_epochs(diverging: EpochEnd, end_offset: int) -> None:
    core = follower(LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)]))
    effects = deliver(core, core.start(NOW), reply(diverging=diverging), 3)
    assert [one.end_offset for one in only(TruncateLog, effects)] == [end_offset]
    assert core.replica.log.end_offset == end_offset


def test_committed_records_are_never_cut() -> None:
    core = follower(LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)]))
    effects = deliver(core, core.start(NOW), reply(high_watermark=9), 3)
    with pytest.raises(QuorumBrokenError, match="everything below 9 is committed"):
        deliver(core, effects, reply(diverging=EpochEnd(1, 4)), 3)


def test_a_reply_counts_once_and_only_from_the_leader_that_was_asked() -> None:
    core = follower()
    effects = core.start(NOW)
    deliver(core, effects, reply(batches=(Batch(0, 0, 1, b"a"),)), 3)
    assert deliver(core, effects, reply(batches=(Batch(1, 1, 1, b"b"),)), 3) == []
    assert core.replica.log.end_offset == 1


def test_a_snapshot_is_fetched_in_parts_and_replaces_the_log() -> None:
    core = follower(LogHistory(end_offset=10, epochs=[(1, 0), (3, 6)]))
    snapshot = SnapshotId(20, 4)
    effects = deliver(core, core.start(NOW), reply(snapshot=snapshot), 3)
    requests = [one.request for one in only(Send, effects) if isinstance(one.request, FetchSnapshotRequest)]
    assert [(one.snapshot, one.position) for one in requests] == [(snapshot, 0)]

    def part(data: bytes, position: int) -> FetchSnapshotReply:
        return FetchSnapshotReply(ErrorCode.NONE, LeaderHint(EPOCH, 3), snapshot, 6, position, data)

    snapshots_only = [one for one in effects if isinstance(one, Send) and isinstance(one.request, FetchSnapshotRequest)]
    effects = deliver(core, [*snapshots_only], part(b"abcd", 0), 3)
    assert [one.data for one in only(WriteSnapshot, effects)] == [b"abcd"]
    effects = deliver(core, effects, part(b"ef", 4), 3)
    assert [type(one) for one in effects] == [WriteSnapshot, FinishSnapshot]
    effects = core.snapshot_installed(snapshot, None, NOW)
    assert [one.high_watermark for one in only(Commit, effects)] == [20]
    (request,) = only(Send, effects)
    assert isinstance(request.request, FetchRequest)
    assert (request.request.fetch_offset, request.request.last_fetched_epoch) == (20, 4)


def test_a_snapshot_that_is_gone_or_damaged_is_asked_for_again() -> None:
    core = follower()
    snapshot = SnapshotId(20, 4)
    effects = deliver(core, core.start(NOW), reply(snapshot=snapshot), 3)
    asked = [one for one in only(Send, effects) if isinstance(one.request, FetchSnapshotRequest)]
    gone = FetchSnapshotReply(ErrorCode.SNAPSHOT_NOT_FOUND, LeaderHint(EPOCH, 3), snapshot)
    deliver(core, [*asked], gone, 3)
    role = core.replica.role
    assert isinstance(role, Follower)
    assert role.download is None
    again = only(Send, core.on_time(NOW + 20))
    assert isinstance(again[0].request, FetchRequest)


def test_an_observer_looks_for_the_leader_and_never_stands() -> None:
    core = new_core(9, 3)
    effects = core.start(NOW)
    (asked,) = only(Send, effects)
    assert asked.to in (1, 2, 3)
    deliver(core, effects, FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, LeaderHint(7, 2)), asked.to)
    assert isinstance(core.replica.role, Follower)
    core.on_time(NOW + 2000)
    assert core.replica.epoch == 7
    assert not isinstance(core.replica.role, Follower)
    core.on_time(NOW + 60_000)
    assert core.replica.epoch == 7


def test_a_request_that_fails_is_repeated_after_longer_and_longer_pauses() -> None:
    core = follower()
    (sent,) = only(Send, core.start(NOW))
    pauses = []
    for _ in range(8):
        core.on_failure(3, sent.number, NOW)
        due_ms = core.replica.role.outreach.next_ms()
        pauses.append(due_ms - NOW)
        (sent,) = [one for one in only(Send, core.on_time(min(due_ms, NOW + 1900))) if one.to == 3][:1] or [sent]
    assert pauses[:6] == [20, 40, 80, 160, 320, 640]
    assert max(pauses) == 640
