"""Measure a REST proxy: a broker and a proxy as users run them, a C client with kept connections.

The same records go through `confluent_kafka` directly, in the same run. Start at `main`; `scripts/bench-rest` sets up
what it needs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import clients
from bench.brokers import Moldau
from bench.machine import describe, settle, usage_of

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
BEGIN, END = "<!-- results: written by scripts/bench-rest -->", "<!-- end of results -->"
V2_JSON, V2 = "application/vnd.kafka.json.v2+json", "application/vnd.kafka.v2+json"
READY = re.compile(r"REST proxy started: (http://\S+):(\d+)")
RECORD = {"text": "x" * 1000, "number": 1}
SIZES = (1, 10, 100)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-rest", description="The REST proxy under load.")
    parser.add_argument("--records", type=int, default=50_000, help="records of 1 KB in a round of the larger batches")
    parser.add_argument("--requests", type=int, default=10_000, help="requests in a round of single records")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--settle-s", type=float, default=60, help="how long to wait for a quiet machine before a run")
    parser.add_argument("--save", action="store_true", help="keep the result in bench/rest/results")
    parser.add_argument("--readme", action="store_true", help="put the table into bench/rest/README.md")
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
        "connections": arguments.connections,
    }
    with Moldau(folder / "broker") as broker, Rest(broker.bootstrap) as rest:
        for size in SIZES:
            file = _frames(folder / f"batch-{size}", [_produce(f"batch-{size}", size)] * 16)
            requests = arguments.requests if size == 1 else max(500, arguments.records // size)
            result[f"batch_{size}"] = _rounds(
                arguments,
                lambda file=file, requests=requests, size=size: _batches(rest, arguments, file, requests, size),
            )
        result["stream"] = _rounds(arguments, lambda: _stream(rest, arguments, arguments.records))
        result["consume"] = _rounds(arguments, lambda: _consume(rest, arguments.records))
        result["direct"] = _rounds(arguments, lambda: _direct(broker.bootstrap, arguments.records))
        result["resident_mib"] = usage_of(rest.pid).resident_bytes / 2**20
    return result


def _rounds(arguments: argparse.Namespace, run: Callable[[], dict[str, float]]) -> dict[str, float]:
    runs = []
    for _ in range(arguments.rounds):
        settle(arguments.settle_s)
        runs.append(run())
    return {name: statistics.median(one[name] for one in runs) for name in runs[0]}


# Producing


def _batches(rest: Rest, arguments: argparse.Namespace, file: Path, requests: int, size: int) -> dict[str, float]:
    before = usage_of(rest.pid).cpu_s
    run = clients.run(
        "http_load", "requests", requests=requests, file=file, connections=arguments.connections, port=rest.port
    )
    cpu_us = (usage_of(rest.pid).cpu_s - before) / (requests * size) * 1e6
    return {"records_per_s": run["requests_per_s"] * size, "p99_ms": run["p99_ms"], "cpu_us": cpu_us}


def _stream(rest: Rest, arguments: argparse.Namespace, records: int) -> dict[str, float]:
    """Every connection is one request: a stream of records in, a stream of reports out."""
    each = records // arguments.connections
    path = f"/v3/clusters/{rest.cluster_id}/topics/stream/records"
    body = (json.dumps({"value": {"type": "JSON", "data": RECORD}}) + "\n").encode()
    chunk = body * 50
    piece = b"%x\r\n%s\r\n" % (len(chunk), chunk)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    before, began = usage_of(rest.pid).cpu_s, time.monotonic()
    threads = [
        threading.Thread(target=_one_stream, args=(rest.port, head.encode(), piece, max(1, each // 50)))
        for _ in range(arguments.connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, sent = time.monotonic() - began, max(1, each // 50) * 50 * arguments.connections
    cpu_us = (usage_of(rest.pid).cpu_s - before) / sent * 1e6
    return {"records_per_s": sent / seconds, "cpu_us": cpu_us}


def _one_stream(port: int, head: bytes, piece: bytes, pieces: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:

        def send() -> None:
            connection.sendall(head)
            for _ in range(pieces):
                connection.sendall(piece)
            connection.sendall(b"0\r\n\r\n")

        sending = threading.Thread(target=send)
        sending.start()
        received, stored, rest = b"", 0, b""
        while not received.endswith(b"0\r\n\r\n"):
            received = connection.recv(1 << 20)
            if not received:
                raise RuntimeError("the proxy closed a stream early")
            whole = rest + received
            stored += whole.count(b'"error_code":200')
            # A match that is cut by the end of a piece is counted with the next one, and only then.
            rest = whole[-15:]
        sending.join()
        if stored != pieces * 50:
            raise RuntimeError(f"{stored} of {pieces * 50} records were stored")


# Consuming


def _consume(rest: Rest, records: int) -> dict[str, float]:
    """Read back what the batches of 100 wrote, with one instance."""
    settings = {"format": "json", "auto.offset.reset": "earliest", "fetch.min.bytes": 1}
    made = rest.ask("POST", f"/consumers/bench-{time.monotonic_ns()}", settings)
    uri = made["base_uri"]
    place = {"topic": "batch-100", "partition": 0}
    rest.ask("POST", f"{uri}/assignments", {"partitions": [place]})
    rest.ask("POST", f"{uri}/positions/beginning", {"partitions": [place]})
    read, before, began = 0, usage_of(rest.pid).cpu_s, time.monotonic()
    while read < records:
        request = urllib.request.Request(f"{uri}/records?max_bytes=4000000", headers={"accept": V2_JSON})
        with urllib.request.urlopen(request, timeout=60) as answer:
            read += answer.read().count(b'"offset":')
    seconds = time.monotonic() - began
    rest.ask("DELETE", uri)
    return {"records_per_s": read / seconds, "cpu_us": (usage_of(rest.pid).cpu_s - before) / read * 1e6}


def _direct(bootstrap: str, records: int) -> dict[str, float]:
    """The same records through `confluent_kafka`."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    value = json.dumps(RECORD, separators=(",", ":")).encode()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    began = time.monotonic()
    for _ in range(records):
        producer.produce("direct", value)
        producer.poll(0)
    producer.flush()
    produced_s = time.monotonic() - began
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "direct", "enable.auto.commit": False})
    consumer.assign([TopicPartition("direct", 0, 0)])
    began, read = time.monotonic(), 0
    while read < records:
        read += len(consumer.consume(1000, 1.0))
    consumed_s = time.monotonic() - began
    consumer.close()
    return {"produced_per_s": records / produced_s, "consumed_per_s": read / consumed_s}


# The proxy and its requests


class Rest:
    """A proxy as users run it."""

    def __init__(self, bootstrap: str) -> None:
        self._command = [sys.executable, "-m", "moldau.cli.main", "rest", "--host", "127.0.0.1", "--port", "0"]
        self._command += ["-b", bootstrap]

    def __enter__(self) -> Rest:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = READY.search(line)
            if found:
                self.port = int(found.group(2))
                self.cluster_id = self.ask("GET", "/v3/clusters", None)["data"][0]["cluster_id"]
                for topic in ("batch-1", "batch-10", "batch-100", "stream", "direct"):
                    self.ask("POST", f"/v3/clusters/{self.cluster_id}/topics", {"topic_name": topic})
                return self
        raise RuntimeError(f"the proxy ended with {self._process.wait()}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        url = path if path.startswith("http") else f"http://127.0.0.1:{self.port}{path}"
        content = None if body is None else json.dumps(body).encode()
        kind = "application/json" if "/v3/" in url else V2
        request = urllib.request.Request(url, content, {"content-type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def _produce(topic: str, size: int) -> bytes:
    body = json.dumps({"records": [{"value": RECORD}] * size}).encode()
    head = f"POST /topics/{topic} HTTP/1.1\r\nHost: bench\r\nContent-Type: {V2_JSON}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _frames(path: Path, requests: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(struct.pack("<I", len(request)) + request for request in requests))
    return path


def _table(result: dict[str, Any]) -> str:
    facts, direct = result["machine"], result["direct"]
    lines = [
        f"{result['date']}, {facts['processor']}, {facts['memory']}, {facts['system']}, Python {facts['python']}; "
        f"{result['connections']} connections, medians of {result['rounds']}",
        "",
        "| workload | records/s | p99 ms | CPU µs/record | share of `confluent_kafka` |",
        "| --- | --- | --- | --- | --- |",
    ]
    for size in SIZES:
        run = result[f"batch_{size}"]
        share = run["records_per_s"] / direct["produced_per_s"]
        lines.append(
            f"| produce, batches of {size} | {run['records_per_s']:,.0f} | {run['p99_ms']:.1f} | {run['cpu_us']:.0f} "
            f"| {share:.1%} |"
        )
    stream, consume = result["stream"], result["consume"]
    lines += [
        f"| produce, streams (v3) | {stream['records_per_s']:,.0f} |  | {stream['cpu_us']:.0f} "
        f"| {stream['records_per_s'] / direct['produced_per_s']:.1%} |",
        f"| consume, one instance | {consume['records_per_s']:,.0f} |  | {consume['cpu_us']:.0f} "
        f"| {consume['records_per_s'] / direct['consumed_per_s']:.1%} |",
        f"| `confluent_kafka`, produce | {direct['produced_per_s']:,.0f} |  |  | |",
        f"| `confluent_kafka`, consume | {direct['consumed_per_s']:,.0f} |  |  | |",
        "",
        f"Streams have {stream['records_per_s'] / result['batch_1']['records_per_s']:.1f} times the rate of batches of "
        f"one. Resident after all of it: {result['resident_mib']:.0f} MiB.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
