"""A disk that stops answering keeps those waiting who write to it, tells the operator, and stops nobody else."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from tests.free_ports import free_port
from tests.integration.group_members import ClassicMember, commit, coordinator_is_ready, fetch_offsets
from tests.integration.raw_client import RawClient, batch_of, produce_request
from tests.integration.transaction_client import TransactionClient

from moldau.client.wire import WireClient
from moldau.core.java_hash import partition_for
from moldau.protocol.messages import Message
from moldau.protocol.records import decode_records, split_batches
from moldau.testing.broker import Broker
from moldau.testing.stalled_files import StalledFiles

PRODUCE, METADATA, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, ALTER_CONFIGS = 0, 3, 19, 20, 21, 44
ENOUGH_REQUESTS = 50
OFFSETS_PARTITIONS = 50


@pytest.fixture(scope="module")
def files() -> StalledFiles:
    return StalledFiles()


@pytest.fixture(scope="module")
def broker(files: StalledFiles) -> Iterator[Broker]:
    settings = {
        "moldau.append.thread": "true",
        "metrics.http.port": str(free_port()),
        "group.initial.rebalance.delay.ms": "0",
    }
    with Broker(settings, files=files) as running:
        with RawClient(running.port) as admin, wire(running) as client:
            admin.create_topic("slow")
            admin.create_topic("other")
            admin.produce("other", batch_of(b"cached"))
            admin.produce("slow", batch_of(b"first"))
            coordinator_is_ready(client, "g")
        yield running


@pytest.fixture
def people() -> Iterator[ThreadPoolExecutor]:
    """Clients that may have to wait."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def wire(broker: Broker) -> WireClient:
    return WireClient("127.0.0.1", broker.port)


def group_beside(group: str) -> str:
    """A group that another partition of the offsets' topic looks after."""
    taken = partition_for(group, OFFSETS_PARTITIONS)
    return next(name for name in map(str, range(1000)) if partition_for(name, OFFSETS_PARTITIONS) != taken)


def produce(broker: Broker, topic: str, value: bytes) -> int:
    with RawClient(broker.port) as client:
        return int(client.produce(topic, batch_of(value)).error_code)


def values(broker: Broker, topic: str) -> list[bytes | None]:
    with RawClient(broker.port) as client:
        records = client.fetch(topic, 0).records
    return [one.value for header, batch in split_batches(records) for one in decode_records(batch, header)]


def others_are_served(broker: Broker, member: ClassicMember | None = None) -> None:
    """Each request has the client's timeout: whoever is not served fails here."""
    with RawClient(broker.port) as client:
        for _ in range(ENOUGH_REQUESTS):
            client.ask(METADATA, 9, Message(topics=None, allow_auto_topic_creation=False))
            assert client.fetch("other", 0).records
            if member is not None:
                assert member.heartbeat() == 0


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def committed(broker: Broker, group: str) -> int:
    with wire(broker) as client:
        return int(fetch_offsets(client, group, "other", [0]).topics[0].partitions[0].committed_offset)


def commits_in_log(broker: Broker, group: str) -> int:
    """How many records the offsets' topic has of this group's commits, as its log tells them."""
    number = partition_for(group, OFFSETS_PARTITIONS)
    with RawClient(broker.port) as client:
        records = client.fetch("__consumer_offsets", 0, partitions=(number,)).records
    keys = [one.key or b"" for header, batch in split_batches(records) for one in decode_records(batch, header)]
    return sum(key[:2] == b"\0\1" and group.encode() in key for key in keys)


def test_everybody_else_is_served_while_an_append_hangs(
    broker: Broker, files: StalledFiles, people: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    with wire(broker) as for_member:
        member = ClassicMember(for_member, group_beside("g")).settled()
        with files.stalled("/slow-0/"):
            waiting: list[Future[int]] = [people.submit(produce, broker, "slow", b"%d" % n) for n in range(3)]
            files.wait_until_reached()
            with wire(broker) as committing:
                waiting.append(people.submit(commit, committing, "g", "other", 41))
                others_are_served(broker, member)
                until(lambda: "an append has hung for" in caplog.text)
                with urllib.request.urlopen(f"{broker.metrics_url}/healthz", timeout=20) as answer:
                    (stall,) = json.load(answer)["stalls"]
                assert "slow-0/00000000000000000000.log" in stall["where"]
                assert not any(one.done() for one in waiting)
                assert values(broker, "slow") == [b"first"]
                files.let_go()
                assert [one.result(20) for one in waiting] == [0] * 4
    assert sorted(values(broker, "slow")) == [b"0", b"1", b"2", b"first"]  # type: ignore[type-var]
    assert committed(broker, "g") == 41
    assert commits_in_log(broker, "g") == 1
    until(lambda: "an append goes on after" in caplog.text)
    assert "PartitionLog.append on slow-0" in caplog.text
    with urllib.request.urlopen(f"{broker.metrics_url}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert 'moldau_stalls_total{what="the event loop"} 0' in text
    assert 'moldau_stalls_total{what="an append"} 1' in text


def test_a_commit_that_hangs_is_answered_once_it_is_written_and_only_once(
    broker: Broker, files: StalledFiles, people: ThreadPoolExecutor
) -> None:
    with wire(broker) as first, wire(broker) as second, files.stalled("/__consumer_offsets-"):
        hanging = people.submit(commit, first, "once", "other", 7)
        files.wait_until_reached()
        # Decided in the order they came, each on what the one before left.
        reading = people.submit(committed, broker, "once")
        later = people.submit(commit, second, "once", "other", 8)
        others_are_served(broker)
        assert not any(one.done() for one in (hanging, reading, later))
        files.let_go()
        assert (hanging.result(20), later.result(20)) == (0, 0)
        assert reading.result(20) in (7, 8)
    assert committed(broker, "once") == 8
    assert commits_in_log(broker, "once") == 2


def test_admin_requests_line_up_behind_a_hanging_append(
    broker: Broker, files: StalledFiles, people: ThreadPoolExecutor
) -> None:
    with RawClient(broker.port) as admin:
        admin.create_topic("doomed")
        admin.produce("doomed", batch_of(b"1", b"2", b"3"))

    def ask(key: int, version: int, request: Message) -> Message:
        with RawClient(broker.port) as client:
            return client.ask(key, version, request)

    resource = Message(
        resource_type=2,
        resource_name="other",
        configs=[Message(name="retention.ms", config_operation=0, value="123456789")],
    )
    delete = Message(
        topics=[Message(name="doomed", partitions=[Message(partition_index=0, offset=2)])], timeout_ms=9000
    )
    with files.stalled("/slow-0/"):
        hanging = people.submit(produce, broker, "slow", b"x")
        files.wait_until_reached()
        deleting_records = people.submit(ask, DELETE_RECORDS, 2, delete)
        altering = people.submit(ask, ALTER_CONFIGS, 1, Message(resources=[resource], validate_only=False))
        others_are_served(broker)
        assert not any(one.done() for one in (hanging, deleting_records, altering))
    assert hanging.result(20) == 0
    assert deleting_records.result(20).topics[0].partitions[0].low_watermark == 2
    assert altering.result(20).responses[0].error_code == 0
    with files.stalled("/doomed-0"):
        deleting = people.submit(ask, DELETE_TOPICS, 4, Message(topic_names=["doomed"], timeout_ms=9000))
        files.wait_until_reached()
        others_are_served(broker)
        assert not deleting.done()
        # Another topic's records go their way: renaming a folder holds up no append.
        assert produce(broker, "other", b"meanwhile") == 0
    assert deleting.result(20).responses[0].error_code == 0


@pytest.mark.parametrize("part", ["/__cluster_metadata-0", "/new"])
def test_a_change_of_metadata_that_hangs_holds_up_only_changes_of_metadata(
    broker: Broker, files: StalledFiles, people: ThreadPoolExecutor, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    def create(name: str) -> None:
        with RawClient(broker.port) as admin:
            admin.create_topic(name)

    name = f"new-{len(part)}"
    with wire(broker) as for_member, files.stalled(part):
        creating = people.submit(create, name)
        files.wait_until_reached()
        member = ClassicMember(for_member, f"group-of-{name}").settled()
        others_are_served(broker, member)
        assert produce(broker, "other", b"meanwhile") == 0
        assert not creating.done()
        if part.startswith("/__"):
            until(lambda: "a metadata write has hung for" in caplog.text)
    creating.result(20)
    assert produce(broker, name, b"x") == 0


def test_a_transaction_ends_behind_its_hanging_batches(
    broker: Broker, files: StalledFiles, people: ThreadPoolExecutor
) -> None:
    with TransactionClient(broker.port, "stalled") as writer, TransactionClient(broker.port, "stalled") as ender:
        assert writer.init() == 0
        assert writer.add("slow", 0) == {0: 0}
        ender.producer_id, ender.producer_epoch = writer.producer_id, writer.producer_epoch
        with files.stalled("/slow-0/"):
            writing = people.submit(writer.write, "slow", "in a transaction")
            files.wait_until_reached()
            ending = people.submit(lambda: ender.end(is_commit=True))
            others_are_served(broker)
            assert not any(one.done() for one in (writing, ending))
        assert (writing.result(20), ending.result(20)) == (0, 0)
        assert writer.add("slow", 0) == {0: 0}  # answered once the markers of the one before are there
        assert writer.end(is_commit=False) == 0
    with RawClient(broker.port) as reader:
        records = reader.fetch("slow", 0, isolation_level=1).records
    assert b"in a transaction" in records


def test_a_batch_that_comes_behind_a_hanging_marker_opens_no_transaction(
    broker: Broker, files: StalledFiles, people: ThreadPoolExecutor
) -> None:
    with TransactionClient(broker.port, "late") as writer, TransactionClient(broker.port, "late") as ender:
        assert writer.init() == 0
        assert writer.add("slow", 0) == {0: 0}
        assert writer.write("slow", "in time") == 0
        ender.producer_id, ender.producer_epoch = writer.producer_id, writer.producer_epoch
        with files.stalled("/slow-0/"):
            assert ender.end(is_commit=True) == 0
            files.wait_until_reached()
            # The log still shows an open transaction; the coordinator knows better.
            assert writer.write("slow", "too late", sequence=1) != 0
        assert writer.add("slow", 0) == {0: 0}
        assert writer.end(is_commit=False) == 0
    with RawClient(broker.port) as reader:
        until(lambda: (one := reader.fetch("slow", 0)).last_stable_offset == one.high_watermark)
        assert b"too late" not in reader.fetch("slow", 0).records


# --- the first write, which the loop makes itself -------------------------------------------------------


def test_a_loop_that_hangs_in_its_first_slow_write_is_told_and_does_not_hang_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = StalledFiles()
    settings = {"metrics.http.port": str(free_port())}
    with Broker(settings, files=files) as broker, ThreadPoolExecutor(2) as people:
        with RawClient(broker.port) as admin:
            admin.create_topic("slow")
            admin.create_topic("other")
            admin.produce("other", batch_of(b"cached"))
        with files.stalled("/slow-0/"):
            hanging = people.submit(produce, broker, "slow", b"x")
            files.wait_until_reached()
            until(lambda: "the event loop has hung for" in caplog.text)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{broker.metrics_url}/healthz", timeout=20)
            assert refused.value.code == 503
            health = json.load(refused.value)
            assert health["stalls"][0]["what"] == "the event loop"
            assert "slow-0/00000000000000000000.log" in health["stalls"][0]["where"]
        assert hanging.result(20) == 0
        until(lambda: "the event loop goes on after" in caplog.text)
        # From here on a thread appends, until the disk has kept up for a while.
        with files.stalled("/slow-0/"):
            hanging = people.submit(produce, broker, "slow", b"y")
            files.wait_until_reached()
            others_are_served(broker)
            assert not hanging.done()
        assert hanging.result(20) == 0
        with RawClient(broker.port) as client:
            client.send(client.frame(PRODUCE, 9, produce_request("slow", batch_of(b"z"))))
            assert client.receive(PRODUCE, 9).responses[0].partition_responses[0].base_offset == 2
