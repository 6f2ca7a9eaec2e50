"""A broker that runs out of file descriptors at a partition's first append: what it acknowledged is there, once.

The limit of the running process is lowered so that it has a given number of descriptors left, and raised again before
what was refused is sent once more. Afterwards the broker is killed and started on what its files hold.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.integration.killable import KillableBroker
from tests.integration.server_process import wait_until
from tests.integration.stranger import Stranger, batch_of

from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

FREE = range(6)
"""How many descriptors are left; one is what an append needed too much when this was found."""

BATCHES = 3
PRODUCER_ID = 1000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    started = KillableBroker(tmp_path, {"offsets.topic.num.partitions": "8", "offsets.topic.replication.factor": "1"})
    started.start()
    yield started
    started.close()


@contextmanager
def descriptors_left(pid: int, free: int) -> Iterator[None]:
    """Leave a process that many descriptors; the kernel compares the limit with the lowest free number."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    unused = (number for number in count() if number not in used)
    limit = [next(unused) for _ in range(free + 1)][-1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def value_of(number: int) -> bytes:
    return b"value %d" % number


def send(stranger: Stranger, free: int, number: int) -> int | None:
    """Send a batch of an idempotent producer; returns its offset, or `None` when it was refused."""
    fields = {"producer_id": PRODUCER_ID + free, "producer_epoch": 0, "base_sequence": number}
    answer = stranger.produce(f"t{free}", batch_of(value_of(number), **fields))
    return None if answer.error_code else answer.base_offset


def test_records_acknowledged_while_descriptors_run_out_are_there_once(broker: KillableBroker) -> None:
    with Stranger(broker.port) as stranger:
        for free in FREE:
            stranger.create_topic(f"t{free}")
        for free in FREE:
            with descriptors_left(broker.pid, free):
                first = send(stranger, free, 0)
            offsets = [send(stranger, free, 0) if first is None else first]
            offsets += [send(stranger, free, number) for number in range(1, BATCHES)]
            assert offsets == list(range(BATCHES)), f"with {free} descriptors left"
    broker.kill()
    broker.start()
    with Stranger(broker.port) as stranger:
        for free in FREE:
            assert stranger.values(f"t{free}") == [value_of(number) for number in range(BATCHES)]
            assert send(stranger, free, BATCHES - 1) == BATCHES - 1, "a resend is recognised"
            assert send(stranger, free, BATCHES) == BATCHES
    assert "Traceback" not in broker.last_words


def test_offsets_committed_while_descriptors_run_out_are_there(broker: KillableBroker) -> None:
    """The first append to a partition of `__consumer_offsets`; these groups are on partitions of their own."""
    groups = {f"g{free}": free for free in FREE}
    with Stranger(broker.port) as stranger:
        stranger.create_topic("t")
        # Another group first: it makes the internal topic and loads the code of commits.
        stranger.ask(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g6"])
        wait_until(lambda: commit(stranger, "g6", 0) == 0, what="the coordinator")
        for group, free in groups.items():
            with descriptors_left(broker.pid, free):
                is_committed = commit(stranger, group, 5) == 0
            if not is_committed:
                wait_until(lambda group=group: commit(stranger, group, 5) == 0, what="the commit")  # type: ignore[misc]
            assert commit(stranger, group, 6) == 0
            assert committed(stranger, group) == 6
    broker.kill()
    broker.start()
    with Stranger(broker.port) as stranger:
        for group in groups:
            wait_until(lambda group=group: committed(stranger, group) == 6, what=group)  # type: ignore[misc]


def test_requests_whose_code_is_not_loaded_yet_are_answered(broker: KillableBroker) -> None:
    """The code of an API and version is read from files at its first request."""
    with Stranger(broker.port) as stranger:
        stranger.create_topic("t")  # answered when the start is over
        for version in (0, 1, 5):
            with descriptors_left(broker.pid, 0):
                answer = stranger.ask(ApiKey.DESCRIBE_GROUPS, version, groups=["unknown"])
            assert [group.group_id for group in answer.groups] == ["unknown"]
    assert "Traceback" not in broker.last_words


def commit(stranger: Stranger, group: str, offset: int) -> int:
    partition = Message(partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
    answer = stranger.ask(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[Message(name="t", partitions=[partition])],
    )
    code: int = answer.topics[0].partitions[0].error_code
    return code


def committed(stranger: Stranger, group: str) -> int | None:
    topics = [Message(name="t", partition_indexes=[0])]
    answer = stranger.ask(ApiKey.OFFSET_FETCH, 8, groups=[Message(group_id=group, topics=topics)], require_stable=False)
    (found,) = answer.groups
    return None if found.error_code else found.topics[0].partitions[0].committed_offset
