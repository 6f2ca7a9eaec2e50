"""The quorum's own records, in bytes and as the core knows them: leader changes, voters, kraft.version.

They are control records of the metadata log and of its snapshots. Start at `control_values` and `batches_in`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.core.errors import MoldauError
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import ControlType, control_type, crc_of, decode_records, split_batches
from moldau.raft.messages import NOBODY
from moldau.raft.records import Batch, ControlRecord, KRaftVersionRecord, LeaderChangeRecord, VotersRecord
from moldau.raft.voter_history import BEFORE_THE_LOG, VoterState
from moldau.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

if TYPE_CHECKING:
    from moldau.protocol.messages import Message

__all__ = ["ControlValue", "batches_in", "control_values", "voters_in", "voters_records"]

ControlValue = tuple[ControlType, bytes]
"""A control record: its type and its encoded value."""


def control_values(records: Iterable[ControlRecord]) -> list[ControlValue]:
    return [(_kind(record), _value(record)) for record in records]


def voters_records(state: VoterState) -> list[ControlValue]:
    """What a snapshot says about the voters: nothing in a static quorum, whose settings say it."""
    if state.kraft_version == 0:
        return []
    return control_values((KRaftVersionRecord(state.kraft_version), VotersRecord(state.voters)))


def voters_in(data: bytes) -> VoterState | None:
    """What a snapshot's bytes say about the voters; `None` if nothing."""
    version, voters = 0, None
    for batch in batches_in(data):
        for record in batch.control:
            if isinstance(record, KRaftVersionRecord):
                version = record.version
            elif isinstance(record, VotersRecord):
                voters = record.voters
    return None if voters is None else VoterState(BEFORE_THE_LOG, version, voters)


def _kind(record: ControlRecord) -> ControlType:
    if isinstance(record, LeaderChangeRecord):
        return ControlType.LEADER_CHANGE
    return ControlType.KRAFT_VERSION if isinstance(record, KRaftVersionRecord) else ControlType.KRAFT_VOTERS


def _value(record: ControlRecord) -> bytes:
    if isinstance(record, LeaderChangeRecord):
        return _leader_change(record)
    from moldau.protocol.control_records import encode_control
    from moldau.protocol.messages import Message

    if isinstance(record, KRaftVersionRecord):
        return encode_control(ControlType.KRAFT_VERSION, Message(k_raft_version=record.version))
    voters = [
        Message(
            voter_id=one.key.id,
            voter_directory_id=one.key.directory_id,
            endpoints=[Message(name=at.listener, host=at.host, port=at.port) for at in one.endpoints],
            k_raft_version_feature=Message(
                min_supported_version=one.min_kraft_version, max_supported_version=one.max_kraft_version
            ),
        )
        for one in record.voters
    ]
    return encode_control(ControlType.KRAFT_VOTERS, Message(voters=voters))


def _leader_change(record: LeaderChangeRecord) -> bytes:
    """Version 0, written by hand: a single node needs no message schemas to start."""
    lists = b"".join(
        bytes((len(ids) + 1,)) + b"".join(node_id.to_bytes(4, "big") + b"\0" for node_id in ids)
        for ids in (record.voters, record.granting)
    )
    return b"\0\0" + record.leader_id.to_bytes(4, "big") + lists + b"\0"


# --- reading ----------------------------------------------------------------------------------------


def batches_in(data: bytes) -> tuple[Batch, ...]:
    """The whole and undamaged batches at the beginning of `data`; what follows is fetched again."""
    batches: list[Batch] = []
    try:
        for header, view in split_batches(data):
            if crc_of(view) != header.crc:
                break
            control = tuple(_controls(view, header)) if header.is_control else ()
            epoch = header.partition_leader_epoch
            batches.append(Batch(header.base_offset, header.last_offset, epoch, bytes(view), control))
    except MoldauError:
        pass
    return tuple(batches)


def _controls(batch: memoryview, header: BatchHeader) -> Iterable[ControlRecord]:
    from moldau.protocol.control_records import decode_control

    for record in decode_records(batch, header):
        kind = control_type(record.key)
        if kind == ControlType.LEADER_CHANGE:
            change = decode_control(kind, record.value)
            voters = tuple(one.voter_id for one in change.voters)
            yield LeaderChangeRecord(change.leader_id, voters, tuple(one.voter_id for one in change.granting_voters))
        elif kind == ControlType.KRAFT_VERSION:
            yield KRaftVersionRecord(decode_control(kind, record.value).k_raft_version)
        elif kind == ControlType.KRAFT_VOTERS:
            yield VotersRecord(VoterSet.of(_voter(one) for one in decode_control(kind, record.value).voters))
        else:
            # Nothing that a quorum writes; it takes an offset.
            yield LeaderChangeRecord(NOBODY, (), ())


def _voter(one: Message) -> Voter:
    feature = one.k_raft_version_feature
    key = ReplicaKey(one.voter_id, one.voter_directory_id)
    return Voter(
        key,
        tuple(Endpoint(at.name, at.host, at.port) for at in one.endpoints),
        feature.min_supported_version,
        feature.max_supported_version,
    )
