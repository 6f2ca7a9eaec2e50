"""A broker killed in the middle of commits: the offsets of one commit are all there or none, and none is lost."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest
from tests.integration.server_process import ServerProcess, wait_until

from moldau.client.errors import UnreachableError
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

PARTITIONS = 20
KILLS = 5


def commit(client: WireClient, offset: int) -> int:
    partitions = [
        Message(partition_index=number, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
        for number in range(PARTITIONS)
    ]
    request = Message(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[Message(name="t", partitions=partitions)],
    )
    (topic,) = client.send(ApiKey.OFFSET_COMMIT, request, 8).topics
    code: int = topic.partitions[0].error_code
    return code


def committed(client: WireClient) -> set[int]:
    topics = [Message(name="t", partition_indexes=list(range(PARTITIONS)))]
    request = Message(groups=[Message(group_id="g", topics=topics)], require_stable=False)
    found: list[Message] = []

    def is_loaded() -> bool:
        found[:] = client.send(ApiKey.OFFSET_FETCH, request, 8).groups
        return bool(found[0].error_code == 0)

    wait_until(is_loaded, what="the offsets")
    return {one.committed_offset for one in found[0].topics[0].partitions}


@pytest.mark.slow
def test_a_commit_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    random = Random(4)
    overrides = [f"--override=log.dirs={tmp_path / 'data'}", "--override=listeners=PLAINTEXT://127.0.0.1:0"]
    acknowledged = -1
    for kill in range(KILLS):
        with ServerProcess(overrides) as server, WireClient("127.0.0.1", server.port) as client:
            if not kill:
                topic = Message(name="t", num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[])
                client.send(ApiKey.CREATE_TOPICS, Message(topics=[topic], timeout_ms=9000, validate_only=False))
                client.send(ApiKey.FIND_COORDINATOR, Message(key_type=0, coordinator_keys=["g"]))
            (found,) = committed(client)
            assert found in (acknowledged, acknowledged + 1)
            acknowledged = found
            assert server.process is not None
            threading.Timer(0.05 + random.random() / 4, server.process.kill).start()
            try:
                while True:
                    assert commit(client, acknowledged + 1) == ErrorCode.NONE
                    acknowledged += 1
            except UnreachableError:
                server.wait()
    assert acknowledged > KILLS
