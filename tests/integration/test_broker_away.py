"""Programs and tools whose broker is away: they say so once, and are gone when they are told to.

Started all at once, since each spends its time waiting: a test costs what its slowest program does. Bounds are far
above what is promised, 3 s, and far below what an end took that waited for the broker.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path

import pytest
from tests.integration.cli_commands import Running, installed
from tests.integration.killable import KillableBroker
from tests.integration.server_process import wait_until

from moldau.cli.verifiable.producer import MAX_UNACKNOWLEDGED, Numbers
from moldau.client import Admin, Producer

LIMIT_S = 9.0
AWAY = "is not available"
REPOSITORY = Path(__file__).parent.parent.parent

TOOLS = {
    "kafka-topics": "kafka-topics --list --bootstrap-server {}",
    "kafka-topics --create": "kafka-topics --create --topic t --bootstrap-server {}",
    "kafka-configs": "kafka-configs --describe --topic t --bootstrap-server {}",
    "kafka-consumer-groups": "kafka-consumer-groups --list --bootstrap-server {}",
    "kafka-get-offsets": "kafka-get-offsets --topic t --bootstrap-server {}",
    "moldau topics": "moldau topics list -b {}",
    "moldau groups": "moldau groups list -b {}",
    "kafka-console-producer": "kafka-console-producer --topic t --bootstrap-server {}",
    "moldau produce": "moldau produce t -b {}",
    "kafka-verifiable-producer": "kafka-verifiable-producer --topic t --max-messages 17 --bootstrap-server {}",
    "kafka-producer-perf-test": (
        "kafka-producer-perf-test --topic t --num-records 17 --record-size 9 --throughput -1 --bootstrap-server {}"
    ),
    "kafka-console-consumer": "kafka-console-consumer --topic t --bootstrap-server {}",
    "kafka-console-consumer --group": "kafka-console-consumer --topic t --group g --bootstrap-server {}",
    "moldau consume": "moldau consume t -b {}",
    "kafka-verifiable-consumer": "kafka-verifiable-consumer --topic t --group-id g --bootstrap-server {}",
    "kafka-consumer-perf-test": "kafka-consumer-perf-test --topic t --messages 9 --timeout 60000 --bootstrap-server {}",
    "kafka-replay-log-producer": "kafka-replay-log-producer --inputtopic a --outputtopic b --bootstrap-server {}",
    "kafka-e2e-latency": (
        "kafka-e2e-latency --topic t --num-records 3 --producer-acks 1 --record-size 8 --bootstrap-server {}"
    ),
}
SENDING = ("kafka-console-producer", "moldau produce", "kafka-verifiable-producer")
GRACEFUL = ("kafka-console-consumer", "moldau consume", "kafka-verifiable")
"""Those that end a signal's way with 0, as Kafka's do."""


def tool(name: str, servers: str) -> Running:
    words = TOOLS[name].format(servers).split()
    running = Running([*installed(words[0]), *words[1:]])
    if name in ("kafka-console-producer", "moldau produce"):
        running.type(*(str(number) for number in range(17)))
    return running


def program(name: str, servers: str) -> Running:
    return Running(
        [sys.executable, "-m", "tests.integration.away_program", name, servers],
        environment={"PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}"},
    )


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address that refuses connections, and is kept from being given to others."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@contextmanager
def silence() -> Iterator[socket.socket]:
    """A port that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        listening.settimeout(60)
        yield listening


def ends(running: Mapping[str, Running], number: signal.Signals) -> dict[str, str]:
    """Send a signal to all at once; whatever is wrong with the end of each, by its name."""
    began = time.monotonic()
    for one in running.values():
        one.send_signal(number)
    wrong = {}
    for name, one in running.items():
        try:
            one.wait(timeout_s=max(0.1, began + LIMIT_S - time.monotonic()))
        except subprocess.TimeoutExpired:
            wrong[name] = f"still there after {LIMIT_S} s: {one.stdout} {one.stderr}"
            continue
        if "Traceback" in "\n".join(one.stderr):
            wrong[name] = "\n".join(one.stderr)
    return wrong


def lines_about(running: Running, text: str) -> list[str]:
    return [line for line in (*running.stdout, *running.stderr) if text in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_tool_without_a_broker_says_so_once_and_ends_when_told(nowhere: str, number: signal.Signals) -> None:
    with ExitStack() as stack:
        running = {name: stack.enter_context(tool(name, nowhere)) for name in TOOLS}
        for one in running.values():
            one.wait_for_line(AWAY)
        assert ends(running, number) == {}
        told = {name: lines_about(one, AWAY) for name, one in running.items()}
        assert {name: lines for name, lines in told.items() if len(lines) != 1} == {}
        unsent = f"17 records were not sent to topic t: the broker at {nowhere} did not answer"
        assert {name for name in running if lines_about(running[name], unsent)} == set(SENDING)
        interrupted = 128 + number
        codes = {name: one.exit_code for name, one in running.items()}
        assert codes == {name: 0 if name.startswith(GRACEFUL) else interrupted for name in TOOLS}
        totals = [name for name, one in running.items() if lines_about(one, "Processed a total of 0 messages")]
        assert totals == ["kafka-console-consumer", "kafka-console-consumer --group"]


def test_a_producer_without_end_holds_few_records_for_a_broker_that_is_away(nowhere: str, tmp_path: Path) -> None:
    """Each record that was not sent is reported, so a tool that holds a million of them takes long to end."""
    numbers = Numbers(
        {"bootstrap.servers": nowhere}, "t", count=30_000, rate=-1, create_time_ms=-1, prefix=None, keys=None
    )
    with (tmp_path / "reports").open("w") as reports, redirect_stdout(reports):
        running = threading.Thread(target=numbers.run)
        running.start()
        wait_until(lambda: numbers.unacknowledged >= MAX_UNACKNOWLEDGED, what="a full buffer")
        numbers.stop()
        running.join(LIMIT_S)
    assert not running.is_alive()
    lines = (tmp_path / "reports").read_text().splitlines()
    assert len([line for line in lines if "producer_send_error" in line]) == MAX_UNACKNOWLEDGED
    assert f'"sent":{MAX_UNACKNOWLEDGED},"acked":0' in lines[-1]


def test_a_program_without_a_broker_says_so_once_and_ends_when_told(nowhere: str) -> None:
    names = (
        "acknowledging",
        "consumer",
        "exactly-once",
        "flush",
        "listeners",
        "partitioner",
        "transactions",
        "with-block",
    )
    with ExitStack() as stack:
        running = {name: stack.enter_context(program(name, nowhere)) for name in names}
        for one in running.values():
            one.wait_for_line(AWAY)
        assert ends(running, signal.SIGINT) == {}
        told = {name: lines_about(one, AWAY) for name, one in running.items()}
        assert {name: lines for name, lines in told.items() if len(lines) != 1} == {}
        unsent = f"17 records were not sent to topic orders: the broker at {nowhere} did not answer"
        assert {name for name in names if lines_about(running[name], unsent)} == {"flush", "with-block"}
        codes = {name: one.exit_code for name, one in running.items()}
        # Listeners end in good order, the others by the exception that Ctrl-C raises.
        assert codes == {name: 0 if name in ("acknowledging", "listeners") else 130 for name in names}


def test_listeners_end_by_sigterm_too(nowhere: str) -> None:
    with program("listeners", nowhere) as running:
        running.wait_for_line(AWAY)
        assert ends({"listeners": running}, signal.SIGTERM) == {}
        assert running.exit_code == 0


def test_a_port_that_takes_connections_and_never_answers_holds_nobody() -> None:
    """Nothing is said yet: ten seconds are left before librdkafka gives up on its first request."""
    tools = ("kafka-topics", "moldau topics", "kafka-console-producer", "kafka-console-consumer --group")
    programs = ("consumer", "exactly-once", "listeners", "positions", "with-block")
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        for start, names in ((tool, tools), (program, programs)):
            for name in names:
                listening = stack.enter_context(silence())
                running[name] = stack.enter_context(start(name, f"127.0.0.1:{listening.getsockname()[1]}"))
                stack.enter_context(listening.accept()[0])
        for name in programs:
            if name in ("positions", "with-block"):
                running[name].wait_for_line("ready")
        assert ends(running, signal.SIGINT) == {}
        assert lines_about(running["with-block"], "17 records were not sent to topic orders")


CONNECTED = ("acknowledging", "commit", "commits", "consumer", "exactly-once", "listeners", "send-on")


@contextmanager
def at_work(folder: Path, names: Sequence[str]) -> Iterator[tuple[KillableBroker, dict[str, Running]]]:
    """A broker, and programs that use it."""
    broker = KillableBroker(folder, {"num.partitions": "1", "group.initial.rebalance.delay.ms": "0"})
    try:
        broker.start()
        servers = broker.bootstrap_servers
        for topic in ("orders", "copies"):
            Admin(servers).create_topic(topic, partitions=3)
        with Producer(servers) as producer:
            for number in range(30):
                producer.send("orders", "v", key=str(number))
        with ExitStack() as stack:
            running = {name: stack.enter_context(program(name, servers)) for name in names}
            for one in running.values():
                one.wait_for_line("ready")
            yield broker, running
    finally:
        broker.thaw()
        broker.close()


@pytest.mark.parametrize("fate", ["frozen", "killed"])
def test_a_broker_that_goes_away_in_the_middle_holds_nobody(tmp_path: Path, fate: str) -> None:
    with at_work(tmp_path, CONNECTED) as (broker, running):
        if fate == "frozen":
            broker.freeze()
        else:
            broker.kill()
        assert ends(running, signal.SIGINT) == {}


def test_an_outage_is_one_line_at_its_beginning_and_one_at_its_end(tmp_path: Path) -> None:
    with at_work(tmp_path, ("consumer", "send-on")) as (broker, running):
        broker.kill()
        for one in running.values():
            one.wait_for_line(AWAY)
        broker.start()
        for one in running.values():
            one.wait_for_line("answers again")
        assert ends(running, signal.SIGINT) == {}
        for one in running.values():
            assert len(lines_about(one, AWAY)) == 1
            assert len(lines_about(one, "answers again")) == 1
            # Records of the last moments may still have been on their way.
            assert len([line for line in one.stderr if " were " not in line and " was " not in line]) == 2, one.stderr
