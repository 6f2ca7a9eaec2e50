"""`moldau demo`: a broker, a topic, a million records in and out, with a progress bar and a summary.

It runs the same `moldau server` a user would, in a folder that is thrown away afterwards.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["main"]

_TOPIC = "demo"
_START_TIMEOUT_S = 30.0
_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True)
class Leg:
    """One way through the broker: all records in, or all records out."""

    records: int
    record_size: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    @property
    def megabytes_per_second(self) -> float:
        return self.records * self.record_size / self.seconds / 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console()
    console.print(f"[bold]moldau demo[/]: {options.records:,} records of {options.size} bytes, in and out again\n")
    began = time.monotonic()
    with _server(options.keep) as (bootstrap, process):
        start_s = time.monotonic() - began
        console.print(f"broker on {bootstrap}, ready {start_s * 1000:.0f} ms after it was started")
        _create_topic(bootstrap, options.partitions)
        with _progress(console) as progress:
            produced = _produce(bootstrap, options, progress)
            consumed = _consume(bootstrap, options, progress)
        memory_mb = _resident_mb(process.pid)
    console.print(_summary(produced, consumed, memory_mb))
    if consumed.records != produced.records:
        console.print(f"[red]{produced.records - consumed.records:,} records did not come back[/]")
        return 1
    console.print("Every record came back. Start a broker of your own with [bold]moldau server[/].")
    return 0


@contextmanager
def _server(keep: Path | None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    folder = keep or Path(tempfile.mkdtemp(prefix="moldau-demo-"))
    port = _free_port()
    command = [sys.executable, "-m", "moldau.cli.main", "server", "--port", str(port), "--data", str(folder / "log")]
    command += ["--override", "metrics.http.port=0"]
    folder.mkdir(parents=True, exist_ok=True)
    log_file = folder / "server.out"
    with log_file.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait_until_listening(port, process, log_file)
        yield f"127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _wait_until_listening(port: int, process: subprocess.Popen[bytes], log_file: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the broker did not start:\n{log_file.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.005)
    raise SystemExit(f"the broker did not listen on port {port} within {_START_TIMEOUT_S:.0f} s")


def _create_topic(bootstrap: str, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _ERRORS_ONLY})
    for future in admin.create_topics([NewTopic(_TOPIC, partitions, 1)]).values():
        future.result(30)


def _produce(bootstrap: str, options: argparse.Namespace, progress: Progress) -> Leg:
    from confluent_kafka import Producer

    task = progress.add_task("produce", total=options.records)
    payload = bytes(i % 251 for i in range(options.size))
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    began = time.monotonic()
    for number in range(options.records):
        _send(producer, payload, number % options.partitions)
        if number % 10_000 == 0:
            producer.poll(0)
            progress.update(task, completed=number)
    if producer.flush(120):
        raise SystemExit("the broker did not acknowledge all records within two minutes")
    progress.update(task, completed=options.records)
    return Leg(options.records, options.size, time.monotonic() - began)


def _send(producer: Any, payload: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(_TOPIC, payload, partition=partition)
        except BufferError:
            producer.poll(0.05)
        else:
            return


def _consume(bootstrap: str, options: argparse.Namespace, progress: Progress) -> Leg:
    from confluent_kafka import Consumer, TopicPartition

    task = progress.add_task("consume", total=options.records)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "moldau-demo",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 4_000_000,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 200_000,
        }
    )
    consumer.assign([TopicPartition(_TOPIC, partition, 0) for partition in range(options.partitions)])
    received = 0
    began = time.monotonic()
    while received < options.records:
        records = consumer.consume(10_000, timeout=10)
        if not records:
            break
        received += sum(1 for record in records if record.error() is None)
        progress.update(task, completed=received)
    seconds = time.monotonic() - began
    consumer.close()
    return Leg(received, options.size, seconds)


def _summary(produced: Leg, consumed: Leg, memory_mb: float) -> Table:
    table = Table(title=f"broker memory {memory_mb:.0f} MB", title_justify="left", title_style="dim")
    for column in ("", "records", "seconds", "records/s", "MB/s"):
        table.add_column(column, justify="left" if not column else "right")
    for name, leg in (("produced, acknowledged by all", produced), ("consumed", consumed)):
        table.add_row(
            name,
            f"{leg.records:,}",
            f"{leg.seconds:.2f}",
            f"{leg.records_per_second:,.0f}",
            f"{leg.megabytes_per_second:.0f}",
        )
    return table


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
    )


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="moldau demo", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes in each record's value")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the broker's log and output here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
