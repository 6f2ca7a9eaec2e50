"""Measure `moldau up`: seconds to the first acknowledged record, and the memory of each idle service.

Apache Kafka, a single node as its scripts start it, is measured in the same run: the broker alone, because that is what
it has. Start at `main`; `scripts/bench-platform` sets up what it needs.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.brokers import ApacheKafka, Moldau
from bench.machine import describe, settle, usage_of
from moldau.server.platform.services import DEFAULT_PORTS

FOLDER = Path(__file__).parent
BEGIN, END = "<!-- results: written by scripts/bench-platform -->", "<!-- end of results -->"
PATIENCE_S = 120.0
POLL_S = 0.005
IDLE_S = 5.0
"""How long services are left alone before their memory is read."""
JSON_V2 = "application/vnd.kafka.json.v2+json"


class Platform:
    """`moldau up` in the foreground, in a folder of its own."""

    def __init__(self, folder: Path, *services: str) -> None:
        self._folder = folder
        self.ports = {name: _free_port() for name in DEFAULT_PORTS}
        words = [word for name, port in self.ports.items() for word in ("--port", f"{name}={port}")]
        self._command = [sys.executable, "-m", "moldau", "up", *services, "--data", str(folder), *words]

    def __enter__(self) -> Platform:
        self.began_s = time.monotonic()
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)

    def first_record_s(self) -> float:
        """Seconds from the command to the acknowledgement of a record that is sent over HTTP."""
        while not self._has_stored_one():
            if time.monotonic() - self.began_s > PATIENCE_S:
                raise RuntimeError(f"no record was acknowledged; see the logs in {self._folder}")
            time.sleep(POLL_S)
        return time.monotonic() - self.began_s

    def _has_stored_one(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["rest"], timeout=30)
        try:
            connection.request("POST", "/topics/first", b'{"records": [{"value": 1}]}', {"content-type": JSON_V2})
            answer = connection.getresponse()
            document = json.loads(answer.read())
            return answer.status == 200 and document["offsets"][0]["offset"] is not None
        except (OSError, ValueError, KeyError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def resident_mib(self) -> dict[str, float]:
        """What each service holds once all of them run and have been idle for a moment."""
        while not (services := self._services()) or any(one["phase"] != "running" for one in services.values()):
            time.sleep(0.1)
        time.sleep(IDLE_S)
        held = {name: usage_of(one["process"]["pid"]).resident_bytes / 2**20 for name, one in services.items()}
        supervisor = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * 4096 / 2**20
        return {**held, "supervisor": supervisor}

    def _services(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._folder / "run" / "platform.json").read_text())["services"]
        except FileNotFoundError:  # it is just starting
            return {}
        return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-platform", description="`moldau up`: start and memory.")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each; the median is told")
    parser.add_argument("--settle-s", type=float, default=60, help="how long to wait for a quiet machine before a run")
    parser.add_argument("--without-kafka", action="store_true", help="moldau alone")
    parser.add_argument("--readme", action="store_true", help="put the table into bench/platform/README.md")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        result = _measured(options, Path(folder))
    print(_table(result))
    if options.readme:
        readme = FOLDER / "README.md"
        before, _, rest = readme.read_text().partition(BEGIN)
        readme.write_text(f"{before}{BEGIN}\n\n{_table(result)}\n\n{END}{rest.partition(END)[2]}")
    return 0


def _measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    starts: dict[str, list[float]] = {"platform": [], "broker": [], "kafka": []}
    kafka_mib = 0.0
    for number in range(options.rounds):
        settle(options.settle_s)
        with Platform(folder / f"platform-{number}", "registry", "rest") as platform:
            starts["platform"].append(platform.first_record_s())
        settle(options.settle_s)
        broker = Moldau(folder / f"broker-{number}")
        broker.prepare()
        starts["broker"].append(broker.start())
        broker.stop()
        if not options.without_kafka:
            settle(options.settle_s)
            kafka = ApacheKafka(folder / f"kafka-{number}")
            kafka.prepare()
            starts["kafka"].append(kafka.start())
            time.sleep(IDLE_S)
            kafka_mib = kafka.usage().resident_bytes / 2**20
            kafka.stop()
    with Platform(folder / "whole") as platform:
        resident = platform.resident_mib()
    return {
        "date": datetime.date.today().isoformat(),
        "machine": describe(),
        "rounds": options.rounds,
        "starts": {name: (min(times), statistics.median(times)) for name, times in starts.items() if times},
        "resident_mib": resident,
        "kafka_mib": kafka_mib,
    }


def _table(result: dict[str, Any]) -> str:
    facts, starts = result["machine"], result["starts"]
    titles = {
        "platform": "`moldau up registry rest`, a record over HTTP",
        "broker": "`moldau server`, a record over Kafka's protocol",
        "kafka": "Apache Kafka, one node, a record over Kafka's protocol",
    }
    lines = [
        f"{result['date']}, {facts['processor']}, {facts['memory']}, {facts['system']}, Python {facts['python']}; "
        f"{result['rounds']} starts of each",
        "",
        "| from the command to the first acknowledged record | fastest | median |",
        "| --- | --- | --- |",
        *(f"| {titles[name]} | {least:.2f} s | {median:.2f} s |" for name, (least, median) in starts.items()),
        "",
        "| resident when idle | MiB |",
        "| --- | --- |",
        *(f"| {name} | {mib:.0f} |" for name, mib in result["resident_mib"].items()),
        f"| together | {sum(result['resident_mib'].values()):.0f} |",
    ]
    if result["kafka_mib"]:
        lines.append(f"| Apache Kafka, one node | {result['kafka_mib']:.0f} |")
    return "\n".join(lines)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
