"""File → topic and topic → file, beside Apache Kafka's own file connectors, both as `connect-standalone`.

A connector runs and has copied a part already when the load appears: lines that are appended to the file at once, or
records that a transaction makes readable at once. The clock runs from there to the last of them. Start at `source` and
`sink`.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from bench.connect.records import count_of, line, make_topic, wait_until, write_lines
from bench.connect.workers import KafkaWorker, MoldauWorker, Worker

__all__ = ["WAYS", "sink", "source"]

WAYS = ("connect", "kafka")
PARTS = 20
"""The load is so many times the part that was copied before."""
COPY_S = 600.0
Numbers = dict[str, float]


def source(way: str, bootstrap: str, folder: Path, records: int) -> Numbers:
    """Lines a second from a file into a topic with one partition."""
    file, warm_up = folder / "in.txt", records // PARTS
    folder.mkdir(parents=True)
    file.write_text("".join(f"{line(n)}\n" for n in range(warm_up)))
    make_topic(bootstrap, "lines")
    with _worker(way, folder, bootstrap) as worker:
        worker.make(
            "read",
            {"connector.class": "FileStreamSource", "file": str(file), "topic": "lines", "batch.size": "2000"},
        )
        wait_until(lambda: count_of(bootstrap, "lines") >= warm_up, "the first lines", COPY_S)
        more = "".join(f"{line(n)}\n" for n in range(records))
        before = worker.usage().cpu_s
        began = monotonic()
        with file.open("a") as out:
            out.write(more)
        ended = wait_until(lambda: count_of(bootstrap, "lines") >= warm_up + records, "the lines", COPY_S)
        return _numbers(worker, before, records, ended - began)


def sink(way: str, bootstrap: str, folder: Path, records: int) -> Numbers:
    """Records a second from a topic with one partition into a file."""
    file, warm_up = folder / "out.txt", records // PARTS
    make_topic(bootstrap, "lines")
    write_lines(bootstrap, "lines", warm_up)
    with _worker(way, folder, bootstrap, {"consumer.isolation.level": "read_committed"}) as worker:
        worker.make("write", {"connector.class": "FileStreamSink", "file": str(file), "topics": "lines"})
        size = _size_of(warm_up)
        wait_until(lambda: file.exists() and file.stat().st_size >= size, "the first lines", COPY_S)
        before = worker.usage().cpu_s
        write_lines(bootstrap, "lines", records)
        began = monotonic()
        size += _size_of(records)
        ended = wait_until(lambda: file.stat().st_size >= size, "the lines", COPY_S)
        return _numbers(worker, before, records, ended - began)


def _size_of(count: int) -> int:
    return sum(len(line(n)) + 1 for n in range(count))


def _worker(way: str, folder: Path, bootstrap: str, settings: dict[str, str] | None = None) -> Worker:
    if way == "kafka":
        return KafkaWorker(folder / "worker", bootstrap, settings)
    return MoldauWorker(folder / "worker", bootstrap, settings, standalone=True)


def _numbers(worker: Worker, before: float, records: int, took: float) -> Numbers:
    return {"records_per_s": records / took, "cpu_us": 1e6 * (worker.usage().cpu_s - before) / records}
