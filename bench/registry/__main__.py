"""Measure a registry: a broker and a registry as users run them, a C client with kept connections.

Start at `main`; `scripts/bench-registry` sets up what it needs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import clients
from bench.brokers import Moldau
from bench.machine import describe, settle, usage_of

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
BEGIN, END = "<!-- results: written by scripts/bench-registry -->", "<!-- end of results -->"
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
READY = re.compile(r"schema registry started: (http://\S+):(\d+)")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-registry", description="The schema registry under load.")
    parser.add_argument("--schemas", type=int, default=2000, help="distinct schemas that are registered")
    parser.add_argument("--requests", type=int, default=100_000, help="requests of each kind in a round")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--versions", type=int, default=10_000, help="versions in the topic that a start reads")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--settle-s", type=float, default=60, help="how long to wait for a quiet machine before a run")
    parser.add_argument("--save", action="store_true", help="keep the result in bench/registry/results")
    parser.add_argument("--readme", action="store_true", help="put the table into bench/registry/README.md")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        result = _measured(arguments, Path(folder))
    print(_table(result))
    if arguments.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{result['date']}.json").write_text(json.dumps(result, indent=2) + "\n")
    if arguments.readme:
        _update_readme(_table(result))
    return 0


def _update_readme(table: str) -> None:
    """Put the table between the two markers."""
    readme = FOLDER / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


def _measured(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": describe(),
        "rounds": arguments.rounds,
        "schemas": arguments.schemas,
        "connections": arguments.connections,
        "versions": arguments.versions,
    }
    schemas = [_schema(number) for number in range(arguments.schemas)]
    registering = _frames(folder / "register", (_register(n, text) for n, text in enumerate(schemas)))
    getting = _frames(folder / "get", (_get(f"/schemas/ids/{n + 1}") for n in range(arguments.schemas)))
    with Moldau(folder / "broker") as broker:
        with Registry(broker.bootstrap, "_schemas") as registry:
            load = {"connections": arguments.connections, "port": registry.port}
            settle(arguments.settle_s)
            result["register"] = clients.run(
                "http_load", "requests", requests=arguments.schemas, file=registering, **load
            )
            for name, file in (("get_by_id", getting), ("register_known", registering)):
                runs = []
                for _ in range(arguments.rounds):
                    settle(arguments.settle_s)
                    before = usage_of(registry.pid).cpu_s
                    run = clients.run("http_load", "requests", requests=arguments.requests, file=file, **load)
                    run["cpu_us"] = (usage_of(registry.pid).cpu_s - before) / arguments.requests * 1e6
                    runs.append(run)
                result[name] = _median(runs)
            result["resident_mib"] = usage_of(registry.pid).resident_bytes / 2**20
        result["start_up"] = _start_up(broker.bootstrap, arguments)
    return result


def _start_up(bootstrap: str, arguments: argparse.Namespace) -> dict[str, float]:
    """From the start of the process to the first answered lookup, on an empty topic and on a long one."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for topic in ("_schemas_empty", "_schemas_long"):
        admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(arguments.versions):
        subject, version = f"subject-{number // 10}-value", number % 10 + 1
        key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        value = {"subject": subject, "version": version, "id": number + 1, "schemaType": "AVRO"}
        value |= {"schema": _schema(number), "deleted": False}
        producer.produce("_schemas_long", json.dumps(value), json.dumps(key))
        producer.poll(0)
    producer.flush()
    seconds = {}
    for topic in ("_schemas_empty", "_schemas_long"):
        runs = []
        for _ in range(arguments.rounds):
            settle(arguments.settle_s)
            began = time.monotonic()
            with Registry(bootstrap, topic) as registry:
                path = f"/schemas/ids/{arguments.versions}" if topic == "_schemas_long" else "/subjects"
                urllib.request.urlopen(f"http://127.0.0.1:{registry.port}{path}", timeout=30).read()
                runs.append(time.monotonic() - began)
        seconds[topic] = statistics.median(runs)
    return seconds


class Registry:
    """A registry as users run it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        overrides = {"kafkastore.topic": topic, "schema.registry.group.id": f"{topic}-{time.monotonic_ns()}"}
        words = [word for key, text in overrides.items() for word in ("--override", f"{key}={text}")]
        self._command = [sys.executable, "-m", "moldau.cli.main", "registry", "--host", "127.0.0.1", "--port", "0"]
        self._command += ["-b", bootstrap, *words]

    def __enter__(self) -> Registry:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = READY.search(line)
            if found:
                self.port = int(found.group(2))
                return self
        raise RuntimeError(f"the registry ended with {self._process.wait()}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid


def _schema(number: int) -> str:
    fields = [{"name": f"field{n}", "type": "string", "doc": "what this is about"} for n in range(10)]
    return json.dumps({"type": "record", "name": f"Order{number}", "namespace": "shop", "fields": fields})


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: {MEDIA_TYPE}\r\n\r\n".encode()


def _register(number: int, schema: str) -> bytes:
    body = json.dumps({"schema": schema}).encode()
    head = f"POST /subjects/order{number}-value/versions HTTP/1.1\r\nHost: bench\r\nContent-Type: {MEDIA_TYPE}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _frames(path: Path, requests: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(struct.pack("<I", len(request)) + request for request in requests))
    return path


def _median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _machine(facts: Mapping[str, str]) -> str:
    return f"{facts['processor']}, {facts['memory']}, {facts['system']}, Python {facts['python']}"


def _table(result: dict[str, Any]) -> str:
    rows = [
        (f"register {result['schemas']:,} distinct schemas", result["register"], None),
        ("GET by id", result["get_by_id"], result["get_by_id"]["cpu_us"]),
        ("register a known schema", result["register_known"], result["register_known"]["cpu_us"]),
    ]
    lines = [
        f"{result['date']}, {_machine(result['machine'])}; {result['connections']} connections, "
        f"medians of {result['rounds']}",
        "",
        "| workload | requests/s | p50 ms | p99 ms | CPU µs/request |",
        "| --- | --- | --- | --- | --- |",
    ]
    for title, run, cpu_us in rows:
        cpu = "" if cpu_us is None else f"{cpu_us:.0f}"
        lines.append(f"| {title} | {run['requests_per_s']:,.0f} | {run['p50_ms']:.2f} | {run['p99_ms']:.2f} | {cpu} |")
    start = result["start_up"]
    lines += [
        "",
        f"Start-up, from the process to the first answer: {start['_schemas_empty']:.2f} s on an empty topic, "
        f"{start['_schemas_long']:.2f} s on {result['versions']:,} versions. "
        f"Resident with {result['schemas']:,} schemas: {result['resident_mib']:.0f} MiB.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
