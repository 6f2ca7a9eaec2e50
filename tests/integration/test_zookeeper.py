"""Brokers and the controller in ZooKeeper's place: what is refused, and what goes on while one of them is away."""

from __future__ import annotations

import os
import socket
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.server_process import wait_until
from tests.integration.zookeeper import ZooKeeper, four_letter_word

from moldau.client.errors import ClientError
from moldau.client.registration_point import brokers_behind
from moldau.client.wire import WireClient
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode, StartupError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.server.cluster.finder import unused_id
from moldau.server.directories import has_id, node_id_for
from moldau.testing import Broker

BROKERS, CONTROLLERS = 1, 2


@pytest.fixture
def point() -> Iterator[ZooKeeper]:
    with ZooKeeper() as point:
        yield point


def broker_of(point: ZooKeeper, node_id: int = 0, *, data: Path | None = None) -> Broker:
    quick = {"broker.session.timeout.ms": "1000"}
    return Broker(point.broker_settings | quick | {"node.id": str(node_id)}, data=data)


def consumer_of(servers: str) -> Consumer:
    return Consumer({"bootstrap.servers": servers, "group.id": "readers", "enable.auto.commit": False})


def records_of(servers: str, topic: str) -> list[bytes]:
    """Every record of the topic's only partition."""
    with consumer_of(servers) as consumer:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = [consumer.poll(30) for _ in range(end)]
    return [one.value() for one in found if one is not None and one.error() is None]


def cluster_at(port: int, *, endpoint_type: int = BROKERS) -> Message:
    with WireClient("127.0.0.1", port, 10) as client:
        return client.send(
            ApiKey.DESCRIBE_CLUSTER,
            Message(
                include_cluster_authorized_operations=False, endpoint_type=endpoint_type, include_fenced_brokers=False
            ),
        )


def alive(point: ZooKeeper) -> list[int]:
    return [one.broker_id for one in cluster_at(point.port).brokers]


def test_tools_find_the_broker_and_both_tell_one_cluster_id(point: ZooKeeper) -> None:
    with broker_of(point) as broker:
        assert brokers_behind(f"0.0.0.0:{point.port}/kafka") == broker.bootstrap_servers
        assert brokers_behind(f"localhost:1,localhost:{point.port}") == broker.bootstrap_servers
        assert brokers_behind(broker.bootstrap_servers) == broker.bootstrap_servers
        assert cluster_at(point.port).cluster_id == cluster_at(broker.port).cluster_id
        controllers = cluster_at(point.port, endpoint_type=CONTROLLERS)
        assert [(one.broker_id, one.port) for one in controllers.brokers] == [(3001, point.port)]


def test_brokers_with_other_ids_join_and_clients_are_told_all_of_them(point: ZooKeeper) -> None:
    with broker_of(point, 0) as first, broker_of(point, 1) as second:
        assert alive(point) == [0, 1]
        assert brokers_behind(f"localhost:{point.port}") == f"{first.bootstrap_servers},{second.bootstrap_servers}"
        admin = AdminClient({"bootstrap.servers": first.bootstrap_servers})
        admin.create_topics([NewTopic("both", 2, 2)])["both"].result(30)
        producer = Producer({"bootstrap.servers": first.bootstrap_servers, "acks": "all"})
        for number in range(20):
            producer.produce("both", str(number), partition=number % 2)
        assert producer.flush(30) == 0
        with consumer_of(second.bootstrap_servers) as consumer:
            consumer.assign([TopicPartition("both", number, OFFSET_BEGINNING) for number in (0, 1)])
            read = [one.value() for _ in range(20) if (one := consumer.poll(30)) is not None]
        assert sorted(read, key=int) == [str(number).encode() for number in range(20)]


def test_a_second_broker_with_the_same_id_is_refused(point: ZooKeeper) -> None:
    with broker_of(point), pytest.raises(StartupError, match="a broker with id 0 runs already"):
        broker_of(point, 0).start()


def test_a_broker_that_nobody_takes_in_says_what_to_start(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        settings = {
            "broker.id": "0",
            "zookeeper.connect": f"localhost:{reserved.getsockname()[1]}",
            "zookeeper.connection.timeout.ms": "300",
            "listeners": "PLAINTEXT://127.0.0.1:0",
        }
        refused = Broker(data=tmp_path)
        refused._effective_settings = lambda: settings | {"log.dirs": str(tmp_path)}  # type: ignore[method-assign]
        with pytest.raises(StartupError, match=r"within 300 ms \(.*refused\).*zookeeper-server-start config/zookeeper"):
            refused.start()
    assert not (tmp_path / "meta.properties").exists()


def test_a_broker_serves_on_while_the_controller_is_away_and_is_found_when_it_is_back(point: ZooKeeper) -> None:
    with broker_of(point) as broker:
        cluster_id = cluster_at(point.port).cluster_id
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("while-here", "x")
        assert producer.flush(30) == 0
        point.stop()
        producer.produce("while-here", "y")
        assert producer.flush(30) == 0
        point.start()
        wait_until(lambda: alive(point) == [0], what="the broker's report")
        assert cluster_at(point.port).cluster_id == cluster_id
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("again", 1, 1)])["again"].result(30)


def test_a_controller_that_lost_its_data_gets_the_metadata_back_from_a_broker(point: ZooKeeper, tmp_path: Path) -> None:
    with broker_of(point, data=tmp_path) as broker:
        cluster_id = cluster_at(broker.port).cluster_id
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("kept", "x")
        assert producer.flush(30) == 0
    point.stop()
    point.forget()
    point.start()
    with broker_of(point, data=tmp_path) as broker:
        assert cluster_at(point.port).cluster_id == cluster_id
        assert records_of(broker.bootstrap_servers, "kept") == [b"x"]
    assert not list(tmp_path.glob("*-stray"))


@pytest.mark.parametrize("was_killed", [False, True])
def test_the_folder_of_a_broker_that_was_alone_becomes_the_first_of_a_cluster(
    point: ZooKeeper, tmp_path: Path, was_killed: bool
) -> None:
    """Whether `moldau server` made it, a KRaft file or a file with `zookeeper.connect`: the broker had its metadata."""
    alone = Broker({"node.id": "0"}, data=tmp_path)
    with alone:
        producer = Producer({"bootstrap.servers": alone.bootstrap_servers})
        for number in range(50):
            producer.produce("old", str(number))
        assert producer.flush(30) == 0
        cluster_id = cluster_at(alone.port).cluster_id
        with consumer_of(alone.bootstrap_servers) as consumer:
            consumer.commit(offsets=[TopicPartition("old", 0, 30)], asynchronous=False)
    if was_killed:
        for name in (".kafka_cleanshutdown", "moldau-manifest"):
            (tmp_path / name).unlink(missing_ok=True)
    with broker_of(point, 0, data=tmp_path) as broker, broker_of(point, 1) as other:
        assert cluster_at(point.port).cluster_id == cluster_id
        assert records_of(other.bootstrap_servers, "old") == [str(number).encode() for number in range(50)]
        with consumer_of(other.bootstrap_servers) as consumer:
            assert consumer.committed([TopicPartition("old", 0)], timeout=30)[0].offset == 30
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("new", 1, 2)])["new"].result(30)
        broker.restart()
        assert records_of(broker.bootstrap_servers, "old") == [str(number).encode() for number in range(50)]
    assert not list(tmp_path.glob("*-stray"))


def test_a_cluster_with_metadata_takes_no_other(point: ZooKeeper, tmp_path: Path) -> None:
    with Broker({"node.id": "1"}, data=tmp_path) as alone:
        producer = Producer({"bootstrap.servers": alone.bootstrap_servers})
        producer.produce("mine", "x")
        assert producer.flush(30) == 0
    with broker_of(point, 0), pytest.raises(StartupError, match=r"belong to cluster .* is another one"):
        broker_of(point, 1, data=tmp_path).start()
    assert (tmp_path / "mine-0").is_dir()
    with Broker({"node.id": "1"}, data=tmp_path) as alone:
        assert records_of(alone.bootstrap_servers, "mine") == [b"x"]


def test_brokers_without_an_id_get_one_from_1001_up_and_keep_it(point: ZooKeeper, tmp_path: Path) -> None:
    settings = BrokerConfig({"zookeeper.connect": f"localhost:{point.port}", "log.dirs": str(tmp_path)})
    assert unused_id(settings) == 1001
    with broker_of(point, 0), broker_of(point, 1001, data=tmp_path):
        assert unused_id(settings) == 1002
    assert has_id(settings)
    assert node_id_for(settings) == 1001


def test_a_broker_that_restarts_is_taken_in_and_one_of_another_cluster_is_not(point: ZooKeeper, tmp_path: Path) -> None:
    with broker_of(point, data=tmp_path / "own") as broker:
        broker.restart()
        assert alive(point) == [0]
    assert alive(point) == []
    with ZooKeeper() as elsewhere, broker_of(elsewhere, data=tmp_path / "other"):
        pass
    with pytest.raises(StartupError, match=r"belong to cluster .* is another one"):
        broker_of(point, data=tmp_path / "other").start()


def test_tools_say_when_no_broker_is_there(point: ZooKeeper) -> None:
    with pytest.raises(ClientError, match="no broker is registered at"):
        brokers_behind(f"localhost:{point.port}")
    with broker_of(point):
        pass
    wait_until(lambda: alive(point) == [], what="the end of the broker")
    with pytest.raises(ClientError, match="does not report; is it running"):
        brokers_behind(f"localhost:{point.port}", patience_s=0)


def test_a_server_that_is_something_else_is_told_from_a_registration_point() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        import threading

        def answer() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClientError, match="does not speak Kafka's protocol"):
            brokers_behind(f"127.0.0.1:{stranger.getsockname()[1]}")
        thread.join(10)


def test_four_letter_words_are_answered_on_the_same_port(point: ZooKeeper) -> None:
    assert four_letter_word(point.port, b"ruok") == b"imok"
    assert b"Mode: standalone" in four_letter_word(point.port, b"srvr")
    assert b"zk_server_state\tstandalone" in four_letter_word(point.port, b"mntr")


@pytest.mark.parametrize(
    "noise",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ihhih", 10, 0, 9, 1, -1),
        struct.pack(">ihhih", 10, 62, 99, 1, -1),
        struct.pack(">ihhih", 10, 62, 4, 1, -1),
        # What ZooKeeper's own client begins with: protocol, last zxid, timeout, session, password.
        struct.pack(">iiqiqi16s", 44, 0, 0, 30_000, 0, 16, b""),
    ],
)
def test_noise_is_closed_and_the_point_goes_on(point: ZooKeeper, noise: bytes) -> None:
    assert four_letter_word(point.port, noise) == b""
    assert four_letter_word(point.port, b"ruok") == b"imok"


def test_random_noise_never_stops_the_point(point: ZooKeeper) -> None:
    for _ in range(50):
        body = os.urandom(60)
        four_letter_word(point.port, struct.pack(">ihhi", len(body) + 8, 62, 4, 1) + body)
    assert four_letter_word(point.port, b"ruok") == b"imok"


def test_a_heartbeat_of_a_stranger_is_stale(point: ZooKeeper) -> None:
    with WireClient("127.0.0.1", point.port, 10) as client:
        beat = Message(
            broker_id=5,
            broker_epoch=1,
            current_metadata_offset=0,
            want_fence=False,
            want_shut_down=False,
            offline_log_dirs=[],
        )
        stale = ErrorCode.STALE_BROKER_EPOCH
        wait_until(lambda: client.send(ApiKey.BROKER_HEARTBEAT, beat).error_code == stale, what="the refusal")
        registration = Message(
            broker_id=5,
            cluster_id=cluster_at(point.port).cluster_id,
            incarnation_id=uuid.uuid4(),
            listeners=[],
            features=[],
            rack=None,
            log_dirs=[],
            previous_broker_epoch=-1,
        )
        assert client.send(ApiKey.BROKER_REGISTRATION, registration).error_code == ErrorCode.INVALID_REGISTRATION
