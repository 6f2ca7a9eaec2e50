"""Groups that change protocol while consumers are in them, with librdkafka on both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from tests.integration.consumer_groups import (
    QUICK,
    create_topic,
    describe,
    join,
    new_consumer,
    owners,
    poll_until,
    produce,
    wire,
)

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.testing import Broker

CLASSIC = {"group_protocol": "classic", "session_timeout_ms": 6000, "heartbeat_interval_ms": 200}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(QUICK) as running:
        create_topic(running, "t", 6)
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with wire(broker) as connected:
        yield connected


def kind_and_state(broker: Broker) -> tuple[str, str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    (listed,) = admin.list_consumer_groups().result().valid
    return listed.type.name, listed.state.name


def share(consumers: list[Consumer]) -> list[list[int]]:
    return [sorted(one.partition for one in consumer.assignment()) for consumer in consumers]


def is_shared(consumers: list[Consumer]) -> bool:
    """Whether all six partitions are out, each once, and nobody has more than one more than another."""
    shares = share(consumers)
    sizes = [len(one) for one in shares]
    return (
        sorted(partition for one in shares for partition in one) == [0, 1, 2, 3, 4, 5] and max(sizes) - min(sizes) <= 1
    )


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_consumers_are_replaced_one_by_one_while_the_group_works(
    broker: Broker, client: WireClient, assignor: str
) -> None:
    classic = [new_consumer(broker, ["t"], partition_assignment_strategy=assignor, **CLASSIC) for _ in range(2)]
    poll_until(classic, lambda: is_shared(classic))
    assert kind_and_state(broker)[0] == "CLASSIC"
    seen: list[int] = []
    consumers = [*classic, new_consumer(broker, ["t"])]
    poll_until(consumers, lambda: is_shared(consumers), seen)
    group = describe(client)
    assert sorted(member.member_type for member in group.members) == [0, 0, 1]
    assert len(owners(group)) == 6
    produce(broker, "t", range(30), 6)
    poll_until(consumers, lambda: set(seen) == set(range(30)), seen)
    while classic:
        consumers.remove(classic[-1])
        classic.pop().close()
        consumers.append(new_consumer(broker, ["t"]))
        poll_until(consumers, lambda: is_shared(consumers), seen)
    assert {member.member_type for member in describe(client).members} == {1}
    produce(broker, "t", range(30, 60), 6)
    poll_until(consumers, lambda: set(seen) == set(range(60)), seen)
    for consumer in consumers:
        consumer.close()


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_the_last_of_the_new_consumers_leaves_a_classic_group_behind(
    broker: Broker, client: WireClient, assignor: str
) -> None:
    classic = [new_consumer(broker, ["t"], partition_assignment_strategy=assignor, **CLASSIC) for _ in range(2)]
    poll_until(classic, lambda: is_shared(classic))
    new = new_consumer(broker, ["t"])
    poll_until([*classic, new], lambda: is_shared([*classic, new]))
    assert kind_and_state(broker)[0] == "CONSUMER"
    new.close()
    poll_until(classic, lambda: is_shared(classic))
    poll_until(classic, lambda: kind_and_state(broker) == ("CLASSIC", "STABLE"))
    seen: list[int] = []
    produce(broker, "t", range(30), 6)
    poll_until(classic, lambda: set(seen) == set(range(30)), seen)
    for consumer in classic:
        consumer.close()


def test_a_group_may_be_kept_classic() -> None:
    with Broker({**QUICK, "group.consumer.migration.policy": "disabled"}) as broker:
        create_topic(broker, "t", 6)
        classic = [new_consumer(broker, ["t"], **CLASSIC)]
        poll_until(classic, lambda: is_shared(classic))
        with wire(broker) as client:
            assert join(client, "m").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert kind_and_state(broker) == ("CLASSIC", "STABLE")
        classic[0].close()
