"""Brokers and their registration point: what is refused, and what goes on while one of them is away."""

from __future__ import annotations

import os
import socket
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.registration import RegistrationPoint, four_letter_word
from tests.integration.server_process import wait_until

from moldau.client.errors import ClientError
from moldau.client.registration_point import brokers_behind
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode, StartupError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker

BROKERS, CONTROLLERS = 1, 2


@pytest.fixture
def point() -> Iterator[RegistrationPoint]:
    with RegistrationPoint() as point:
        yield point


def broker_of(point: RegistrationPoint, node_id: int = 0, *, data: Path | None = None) -> Broker:
    return Broker(point.broker_settings | {"node.id": str(node_id)}, data=data)


def cluster_at(port: int, *, endpoint_type: int = BROKERS) -> Message:
    with WireClient("127.0.0.1", port, 10) as client:
        return client.send(
            ApiKey.DESCRIBE_CLUSTER,
            Message(
                include_cluster_authorized_operations=False, endpoint_type=endpoint_type, include_fenced_brokers=False
            ),
        )


def alive(point: RegistrationPoint) -> list[int]:
    return [one.broker_id for one in cluster_at(point.port).brokers]


def test_tools_find_the_broker_and_both_tell_one_cluster_id(point: RegistrationPoint) -> None:
    with broker_of(point) as broker:
        assert brokers_behind(f"0.0.0.0:{point.port}/kafka") == broker.bootstrap_servers
        assert brokers_behind(f"localhost:1,localhost:{point.port}") == broker.bootstrap_servers
        assert brokers_behind(broker.bootstrap_servers) == broker.bootstrap_servers
        assert cluster_at(point.port).cluster_id == cluster_at(broker.port).cluster_id
        controllers = cluster_at(point.port, endpoint_type=CONTROLLERS)
        assert [(one.broker_id, one.port) for one in controllers.brokers] == [(3001, point.port)]
        with WireClient("127.0.0.1", point.port, 10) as client:
            assert sorted(client.api_versions()) == [18, 60, 62, 63]


def test_a_second_broker_is_refused_before_it_formats_anything(point: RegistrationPoint, tmp_path: Path) -> None:
    with broker_of(point) as first:
        with pytest.raises(StartupError) as refused:
            broker_of(point, 1, data=tmp_path).start()
        address = first.bootstrap_servers
        assert f"this cluster has a broker already (id 0 at {address}); several brokers come with" in str(refused.value)
        assert not (tmp_path / "meta.properties").exists()
        assert alive(point) == [0]
    with pytest.raises(StartupError, match=r"\(id 0 at .*, stopped\)"):
        broker_of(point, 1, data=tmp_path).start()


def test_a_second_broker_with_the_same_id_is_refused(point: RegistrationPoint) -> None:
    with broker_of(point), pytest.raises(StartupError, match="a broker with this id runs already"):
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


def test_a_broker_serves_on_while_the_point_is_away_and_is_found_when_it_is_back(point: RegistrationPoint) -> None:
    with broker_of(point) as broker:
        cluster_id = cluster_at(point.port).cluster_id
        point.stop()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("while-away", "x")
        assert producer.flush(30) == 0
        point.start()
        wait_until(lambda: alive(point) == [0], what="the broker's report")
        assert cluster_at(point.port).cluster_id == cluster_id
        with pytest.raises(StartupError, match="has a broker already"):
            broker_of(point, 1).start()


def test_a_point_that_lost_its_data_takes_the_brokers_cluster(point: RegistrationPoint) -> None:
    with broker_of(point) as broker:
        cluster_id = cluster_at(broker.port).cluster_id
        point.stop()
        point.forget()
        point.start()
        wait_until(lambda: alive(point) == [0], what="the broker's registration")
        assert cluster_at(point.port).cluster_id == cluster_id


def test_a_broker_that_restarts_is_taken_in_and_one_of_another_cluster_is_not(
    point: RegistrationPoint, tmp_path: Path
) -> None:
    with broker_of(point, data=tmp_path / "own") as broker:
        broker.restart()
        assert alive(point) == [0]
    assert alive(point) == []
    with RegistrationPoint() as elsewhere, broker_of(elsewhere, data=tmp_path / "other"):
        pass
    with pytest.raises(StartupError, match=r"belong to cluster .* is another one"):
        broker_of(point, data=tmp_path / "other").start()


def test_tools_say_when_no_broker_is_there(point: RegistrationPoint) -> None:
    with pytest.raises(ClientError, match="no broker is registered at"):
        brokers_behind(f"localhost:{point.port}")
    with broker_of(point):
        pass
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


def test_four_letter_words_are_answered_on_the_same_port(point: RegistrationPoint) -> None:
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
def test_noise_is_closed_and_the_point_goes_on(point: RegistrationPoint, noise: bytes) -> None:
    assert four_letter_word(point.port, noise) == b""
    assert four_letter_word(point.port, b"ruok") == b"imok"


def test_random_noise_never_stops_the_point(point: RegistrationPoint) -> None:
    for _ in range(50):
        body = os.urandom(60)
        four_letter_word(point.port, struct.pack(">ihhi", len(body) + 8, 62, 4, 1) + body)
    assert four_letter_word(point.port, b"ruok") == b"imok"


def test_a_heartbeat_of_a_stranger_is_stale(point: RegistrationPoint) -> None:
    with WireClient("127.0.0.1", point.port, 10) as client:
        beat = Message(
            broker_id=5,
            broker_epoch=1,
            current_metadata_offset=0,
            want_fence=False,
            want_shut_down=False,
            offline_log_dirs=[],
        )
        assert client.send(ApiKey.BROKER_HEARTBEAT, beat).error_code == ErrorCode.STALE_BROKER_EPOCH
        registration = Message(
            broker_id=5,
            cluster_id="x",
            incarnation_id=uuid.uuid4(),
            listeners=[],
            features=[],
            rack=None,
            log_dirs=[],
            previous_broker_epoch=-1,
        )
        assert client.send(ApiKey.BROKER_REGISTRATION, registration).error_code == ErrorCode.INVALID_REGISTRATION
