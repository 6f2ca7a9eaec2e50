"""Control records of the metadata log and its snapshots."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.protocol.control_records import decode_control, encode_control
from moldau.protocol.messages import Message
from moldau.protocol.record_schemas import MalformedRecordError
from moldau.protocol.records import ControlType

LEADER_CHANGE = Message(leader_id=1, voters=[Message(voter_id=1)], granting_voters=[Message(voter_id=1)])


def test_a_leader_change_has_the_bytes_apache_kafka_writes() -> None:
    wire = encode_control(ControlType.LEADER_CHANGE, LEADER_CHANGE)
    assert wire.hex() == "00000000000102000000010002000000010000"
    assert decode_control(ControlType.LEADER_CHANGE, wire) == Message(version=0, **vars(LEADER_CHANGE))


def test_voters_have_directories_from_version_1_on() -> None:
    voter = Message(voter_id=1, voter_directory_id=UUID(int=3))
    change = Message(leader_id=1, voters=[voter], granting_voters=[voter])
    read = decode_control(ControlType.LEADER_CHANGE, encode_control(ControlType.LEADER_CHANGE, change, 1))
    assert read == Message(version=1, **vars(change))


def test_snapshots_open_and_close_with_their_own_records() -> None:
    header = encode_control(ControlType.SNAPSHOT_HEADER, Message(last_contained_log_timestamp=5))
    assert header == b"\0\0" + b"\0\0\0\0\0\0\0\5" + b"\0"
    assert decode_control(ControlType.SNAPSHOT_HEADER, header).last_contained_log_timestamp == 5
    footer = encode_control(ControlType.SNAPSHOT_FOOTER, Message())
    assert footer == b"\0\0\0"
    assert decode_control(ControlType.SNAPSHOT_FOOTER, footer) == Message(version=0)


def test_the_voters_of_a_dynamic_quorum_come_back() -> None:
    voters = Message(
        voters=[
            Message(
                voter_id=1,
                voter_directory_id=UUID(int=7),
                endpoints=[Message(name="CONTROLLER", host="localhost", port=9093)],
                k_raft_version_feature=Message(min_supported_version=0, max_supported_version=1),
            )
        ]
    )
    wire = encode_control(ControlType.KRAFT_VOTERS, voters)
    assert decode_control(ControlType.KRAFT_VOTERS, wire) == Message(version=0, **vars(voters))
    version = encode_control(ControlType.KRAFT_VERSION, Message(k_raft_version=1))
    assert decode_control(ControlType.KRAFT_VERSION, version).k_raft_version == 1


def test_a_record_cut_at_any_byte_is_malformed() -> None:
    wire = encode_control(ControlType.LEADER_CHANGE, LEADER_CHANGE)
    for end in range(len(wire)):
        with pytest.raises(MalformedRecordError):
            decode_control(ControlType.LEADER_CHANGE, wire[:end])


@pytest.mark.parametrize(("kind", "value"), [(2, None), (2, b"\xff\xff"), (99, b"\0\0"), (0, b"\0\0")])
def test_records_nobody_knows_are_malformed(kind: int, value: bytes | None) -> None:
    with pytest.raises(MalformedRecordError):
        decode_control(kind, value)
