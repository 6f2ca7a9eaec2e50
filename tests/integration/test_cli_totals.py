"""How much topics hold and groups lag, on moldau and on Apache Kafka: right, and with few requests."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from tests.integration.both_brokers import port
from tests.integration.cli_commands import run_line
from tests.integration.group_members import coordinator_is_ready

from moldau.cli.topics.totals import topic_totals
from moldau.client.admin import Admin
from moldau.client.groups import Groups
from moldau.client.wire import WireClient
from moldau.core.ids import TopicPartition

SETTINGS = {"offsets.topic.num.partitions": "1"}
PARTITIONS = 200
__all__ = ["port"]


@pytest.fixture(scope="module")
def admin(port: int) -> Admin:
    """A cluster with a wide topic, a small one with records, and groups that stand in it."""
    admin = Admin(f"127.0.0.1:{port}", timeout_ms=60_000)
    admin.create_topic("wide", partitions=PARTITIONS, replication_factor=1)
    admin.create_topic("orders", partitions=2, replication_factor=1)
    producer = Producer({"bootstrap.servers": admin.servers})
    for number in range(10):
        producer.produce("orders", f"order {number}", partition=number % 2)
    assert producer.flush(30) == 0
    with WireClient("127.0.0.1", port) as client:
        coordinator_is_ready(client, "any")
    groups = Groups(admin)
    for number in range(150):
        groups.commit(f"group-{number:03d}", {TopicPartition("orders", 0): 2, TopicPartition("orders", 1): number % 6})
    return admin


def sent_requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sent: list[int] = []
    usual = WireClient._exchange

    def counted(client: WireClient, api_key: int, *rest: object) -> bytes:
        sent.append(api_key)
        return usual(client, api_key, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(WireClient, "_exchange", counted)
    return sent


def test_messages_and_sizes_of_many_partitions(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = sent_requests(monkeypatch)
    totals = topic_totals(admin, admin.describe_topics(["orders", "wide"]))
    assert (totals["orders"].messages, totals["wide"].messages) == (10, 0)
    assert (totals["orders"].size_bytes or 0) > 100
    assert totals["wide"].size_bytes == 0
    assert len(sent) == 2, "api versions and one question about all log directories"


def test_offsets_of_all_groups_come_in_a_few_requests(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = sent_requests(monkeypatch)
    found = {listing.group_id: committed for listing, committed in Groups(admin).listings_with_offsets()}
    assert len(found) == 150
    assert found["group-004"] == {TopicPartition("orders", 0): 2, TopicPartition("orders", 1): 4}
    assert len(sent) == 4, "api versions, the groups, and their offsets in two requests"


def test_lists_for_people(admin: Admin) -> None:
    topics = json.loads(run_line(f"moldau -b {admin.servers} topics -o json").stdout)
    assert [(topic["topic"], topic["partitions"], topic["messages"]) for topic in topics] == [
        ("orders", 2, 10),
        ("wide", PARTITIONS, 0),
    ]
    groups = json.loads(run_line(f"moldau groups -b {admin.servers} -o json").stdout)
    lags = {group["group"]: group["lag"] for group in groups}
    assert (lags["group-000"], lags["group-005"]) == (3 + 5, 3 + 0)


def test_names_for_the_tab_key(admin: Admin) -> None:
    offered = run_line(f"moldau completion candidates -- -b {admin.servers} topics describe o").stdout
    assert offered.split() == ["orders"]
    offered = run_line(f"moldau completion candidates -- groups -b {admin.servers} describe group-00").stdout
    assert len(offered.split()) == 10
    nobody = run_line("moldau completion candidates -- -b localhost:1 topics describe o")
    assert (nobody.returncode, nobody.stdout, nobody.stderr) == (0, "", "")
