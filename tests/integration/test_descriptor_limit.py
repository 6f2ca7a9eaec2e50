"""A broker at its limit of open files: the log comes first, nobody is locked out for good, and the end is clean."""

from __future__ import annotations

import resource
import socket
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from tests.free_ports import free_port
from tests.integration.raw_client import RawClient, batch_of
from tests.integration.server_process import ServerProcess, wait_until
from tests.integration.test_server_process import server

LIMIT = 256
PARTITIONS = 300


def limit_open_files(running: ServerProcess, limit: int) -> None:
    assert running.process is not None
    resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (limit, limit))


def open_files(running: ServerProcess) -> int:
    assert running.process is not None
    return len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))


def turned_away(metrics_port: int) -> int:
    """As /metrics tells, which has to answer at the limit too."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith("moldau_refused_connections_total ")).split()[1])


def crowd(stack: ExitStack, port: int, count: int) -> None:
    """Connections that say nothing."""
    for _ in range(count):
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))


def is_served(port: int) -> bool:
    try:
        with RawClient(port) as client:
            client.socket.settimeout(5)
            client.produce("many", batch_of(b"is anybody there"))
    except OSError:
        return False
    return True


def produce_everywhere(client: RawClient, accepted: dict[int, list[bytes]], value: bytes) -> None:
    """Into every partition, so that each of them wants its file; clean refusals may be, and are tried again."""
    for partition in range(PARTITIONS):
        wait_until(
            lambda partition=partition: client.produce("many", batch_of(value), partition=partition).error_code == 0,
            what=f"partition {partition}",
        )
        accepted.setdefault(partition, []).append(value)


def test_a_broker_at_its_limit_serves_recovers_and_ends_cleanly(tmp_path: Path) -> None:
    metrics = free_port()
    accepted: dict[int, list[bytes]] = {}
    with server(tmp_path / "log", "--override", f"metrics.http.port={metrics}") as running:
        port = running.port
        with RawClient(port) as client, ExitStack() as stack:
            client.create_topic("many", PARTITIONS)
            client.produce("many", batch_of(b"first"))
            accepted[0] = [b"first"]
            limit_open_files(running, LIMIT)
            crowd(stack, port, LIMIT + 50)
            # The newest are turned away, the old ones and the log work on.
            assert open_files(running) < LIMIT
            produce_everywhere(client, accepted, b"at the limit")
            client.create_topic("fresh", 3)
            assert client.produce("fresh", batch_of(b"x"), partition=2).error_code == 0
            assert turned_away(metrics) >= 50
            assert running.output.count("too few file descriptors") == 1
        wait_until(lambda: is_served(port), what="new clients to be served again")
        with RawClient(port) as client:
            produce_everywhere(client, accepted, b"afterwards")
        assert running.output.count("too few file descriptors") == 1
        assert "Traceback" not in running.output
        with ExitStack() as stack:
            crowd(stack, port, LIMIT + 50)
            assert running.terminate() == 0
        assert "shut down completed" in running.output
    assert (tmp_path / "log/.kafka_cleanshutdown").exists()
    with server(tmp_path / "log") as again, RawClient(again.port) as client:
        for partition, values in accepted.items():
            if partition:  # the first one also has what those wrote who asked whether anybody is there
                found = client.fetch("many", 0, partitions=(partition,))
                assert found.high_watermark == len(values), partition
        assert "recover" not in again.output
        assert again.terminate() == 0


def test_a_limit_below_what_is_open_is_no_end(tmp_path: Path) -> None:
    with server(tmp_path / "log") as running:
        with RawClient(running.port) as client, ExitStack() as stack:
            client.create_topic("many", PARTITIONS)
            produce_everywhere(client, {}, b"before")
            crowd(stack, running.port, 100)
            wait_until(lambda: open_files(running) > PARTITIONS + 100, what="all to be open")
            limit_open_files(running, 128)
            wait_until(lambda: open_files(running) < 128, what="files and connections to be let go")
        wait_until(lambda: is_served(running.port), what="clients to be served")
        assert running.terminate() == 0
    assert (tmp_path / "log/.kafka_cleanshutdown").exists()


def test_acknowledgements_that_need_a_sync_survive_the_limit(tmp_path: Path) -> None:
    """Each sync opens files for a moment; without one to be had it waits, and nothing is lost or fatal."""
    with server(tmp_path / "log", "--override", "moldau.flush.on.ack=true") as running:
        with RawClient(running.port) as client, ExitStack() as stack:
            client.create_topic("many", PARTITIONS)
            limit_open_files(running, LIMIT)
            crowd(stack, running.port, LIMIT)
            for partition in range(0, PARTITIONS, 3):
                assert client.produce("many", batch_of(b"x"), partition=partition).error_code == 0
        assert running.terminate() == 0
