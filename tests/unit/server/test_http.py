"""The operators' port: fixed paths, honest health, and no patience for anything else."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request

import pytest

from moldau.broker.health.watchdog import Stall
from moldau.broker.metrics import Family, Kind, Metrics, Sample
from moldau.server import http
from moldau.server.http import MAX_CONNECTIONS, MetricsServer


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def answers(*requests: bytes, state: int = 3, offline: dict[str, str] | None = None) -> list[tuple[int, bytes]]:
    async def run() -> list[bytes]:
        metrics = Metrics()
        metrics.add_source(lambda: [Family("kafka.server:KafkaServer", "BrokerState", Kind.GAUGE, "", [Sample((), 3)])])
        server = MetricsServer(metrics, lambda: state, offline=lambda: offline or {})
        port = await server.start("127.0.0.1", 0)
        try:
            return [await ask(port, request) for request in requests]
        finally:
            await server.close()

    found = []
    for answer in asyncio.run(run()):
        head, _, body = answer.partition(b"\r\n\r\n")
        found.append((int(head.split()[1]), body))
    return found


def test_metrics_are_served_as_text() -> None:
    ((status, body),) = answers(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == 200
    assert b"kafka_server_kafkaserver_brokerstate 3\n" in body


def test_jmx_is_served_as_json_and_filtered() -> None:
    some, none = answers(
        b"GET /jmx?object-name=kafka.server:type=KafkaServer,* HTTP/1.1\r\n\r\n",
        b"GET /jmx?object-name=kafka.log:* HTTP/1.1\r\n\r\n",
    )
    assert json.loads(some[1]) == {"kafka.server:type=KafkaServer,name=BrokerState": {"Value": 3}}
    assert json.loads(none[1]) == {}


def test_health_follows_the_broker_state() -> None:
    assert answers(b"GET /healthz HTTP/1.1\r\n\r\n")[0][0] == 200
    assert answers(b"GET /healthz HTTP/1.1\r\n\r\n", state=1)[0][0] == 503
    assert answers(b"GET /readyz HTTP/1.1\r\n\r\n") == [(200, b'{"ready": true}\n')]
    assert answers(b"GET /readyz HTTP/1.1\r\n\r\n", state=1)[0][0] == 503
    assert answers(b"GET /readyz HTTP/1.1\r\n\r\n", offline={"t-0": "the disk is full"})[0][0] == 200


def test_health_names_offline_partitions_and_their_reasons() -> None:
    ((status, body),) = answers(b"GET /healthz HTTP/1.1\r\n\r\n", offline={"t-0": "the disk is full"})
    assert status == 503
    assert json.loads(body) == {
        "broker_state": 3,
        "healthy": False,
        "offline_partition_count": 1,
        "offline_partitions": {"t-0": "the disk is full"},
    }


def test_health_names_a_bounded_number_of_partitions_and_counts_all() -> None:
    many = {f"t-{number}": "full" for number in range(1000)}
    ((_, body),) = answers(b"GET /healthz HTTP/1.1\r\n\r\n", offline=many)
    found = json.loads(body)
    assert found["offline_partition_count"] == 1000
    assert len(found["offline_partitions"]) == 100


def test_other_paths_and_methods_are_refused() -> None:
    found = answers(
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"HEAD /healthz HTTP/1.1\r\n\r\n",
    )
    assert [status for status, _ in found] == [404, 405, 400, 200]
    assert found[-1][1] == b""


def test_those_who_connect_and_say_nothing_do_not_keep_others_out() -> None:
    async def run() -> tuple[bytes, list[bytes]]:
        server = MetricsServer(Metrics(), lambda: 3)
        port = await server.start("127.0.0.1", 0)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * MAX_CONNECTIONS)]
        try:
            answer = await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
            ended = [await reader.read() for reader, _ in silent[: 2 * MAX_CONNECTIONS]]
            return answer, ended
        finally:
            for _, writer in silent:
                writer.close()
                await writer.wait_closed()
            await server.close()

    answer, ended = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert ended == [b""] * (2 * MAX_CONNECTIONS)


def test_health_is_told_while_the_brokers_loop_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BROKER_LOOP_TIMEOUT_S", 0.1)
    answered: list[tuple[int, bytes]] = []

    async def run() -> None:
        server = MetricsServer(Metrics(), lambda: 3, lambda: (True, [Stall("the event loop", "in write on t-0", 2.04)]))
        port = await server.start("127.0.0.1", 0)
        asking = asyncio.get_running_loop().run_in_executor(None, ask_both, port)
        deadline = time.monotonic() + 20
        while len(answered) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)  # as a write to a stalled disk would
        await asking
        await server.close()

    def ask_both(port: int) -> None:
        for path in ("healthz", "metrics"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20)
            answered.append((refused.value.code, refused.value.read()))

    asyncio.run(run())
    (health_status, health), (metrics_status, metrics) = answered
    assert (health_status, metrics_status) == (503, 503)
    assert json.loads(health) == {
        "broker_state": 3,
        "healthy": False,
        "stalls": [{"what": "the event loop", "where": "in write on t-0", "seconds": 2.0}],
    }
    assert b"event loop hangs" in metrics


def test_a_broker_with_a_stalled_disk_is_healthy_and_says_what_waits() -> None:
    async def run() -> bytes:
        server = MetricsServer(Metrics(), lambda: 3, lambda: (False, [Stall("an append", "in write on t-0", 2.04)]))
        port = await server.start("127.0.0.1", 0)
        try:
            return await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        finally:
            await server.close()

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["stalls"][0]["what"] == "an append"
