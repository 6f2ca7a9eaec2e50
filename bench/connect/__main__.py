"""Command line of the measurements of Connect; each part prints its numbers as soon as it has them. Start at `main`."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.brokers import Moldau, free_port
from bench.connect import copies, files, small
from bench.connect.postgres import Postgres
from bench.machine import describe

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that broker, database and workers are ended, too
    if options.quick:
        options.records, options.parquet_records, options.lines = 100_000, 400_000, 500_000
        options.samples, options.idle_seconds = 50, 20
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": describe(),
        "options": {name: str(value) for name, value in vars(options).items() if name != "jar"},
    }
    for name in options.part or PARTS:
        print(f"## {TITLES[name]}", flush=True)
        found[name] = PARTS[name](options, name)
        found[name]["load average"] = os.getloadavg()[0]
        if options.save:
            RESULTS.mkdir(exist_ok=True)
            path = RESULTS / f"{found['date'][:10]}{'-quick' if options.quick else ''}.json"
            earlier = json.loads(path.read_text()) if path.exists() else {}
            path.write_text(json.dumps(earlier | found, indent=1) + "\n")
    return 0


@contextmanager
def _servers() -> Iterator[tuple[str, Path, Postgres]]:
    """A broker, a folder and a database of one measurement."""
    with (
        tempfile.TemporaryDirectory(prefix="moldau-bench-") as name,
        Moldau(Path(name) / "broker") as broker,
        Postgres(Path(name) / "postgres", free_port()) as postgres,
    ):
        yield broker.bootstrap, Path(name) / "app", postgres


def _attempt(what: str, run: Callable[[str, Path, Postgres], Any]) -> Any:
    try:
        with _servers() as (bootstrap, folder, postgres):
            result = run(bootstrap, folder, postgres)
    except (RuntimeError, TimeoutError) as error:
        result = {"failed": str(error)}
    shown = ", ".join(f"{key} {one:,.2f}" if isinstance(one, float) else f"{key} {one}" for key, one in result.items())
    print(f"{what}: {shown}", flush=True)
    return result


def _copies(options: argparse.Namespace, job: str) -> dict[str, Any]:
    records = options.parquet_records if job == "parquet" else options.records
    return {
        way: _attempt(
            way,
            lambda bootstrap, folder, postgres, way=way: copies.measured(  # type: ignore[misc]
                job, way, bootstrap, folder, postgres=postgres, jar=options.jar, records=records
            ),
        )
        for way in _ways(options, copies.WAYS)
    }


def _files(options: argparse.Namespace, name: str) -> dict[str, Any]:
    measure = files.source if name == "file-source" else files.sink
    return {
        way: _attempt(
            way,
            lambda bootstrap, folder, _, way=way: measure(way, bootstrap, folder, options.lines),  # type: ignore[misc]
        )
        for way in _ways(options, files.WAYS)
    }


def _latency(options: argparse.Namespace, _: str) -> dict[str, Any]:
    return dict(
        _attempt(
            "INSERT to record",
            lambda bootstrap, folder, postgres: small.latency(
                bootstrap, folder, postgres=postgres, samples=options.samples
            ),
        )
    )


def _idle(options: argparse.Namespace, _: str) -> dict[str, Any]:
    return dict(
        _attempt(
            f"{options.connectors} idle connectors",
            lambda bootstrap, folder, postgres: small.idle(
                bootstrap, folder, postgres=postgres, connectors=options.connectors, seconds=options.idle_seconds
            ),
        )
    )


def _ways(options: argparse.Namespace, known: tuple[str, ...]) -> list[str]:
    return [way for way in known if not options.way or way in options.way]


TITLES = {
    **copies.JOBS,
    "file-source": "file → topic",
    "file-sink": "topic → file",
    "latency": "latency",
    "idle": "idle connectors",
}
PARTS: dict[str, Callable[[argparse.Namespace, str], dict[str, Any]]] = {
    **dict.fromkeys(copies.JOBS, _copies),
    "file-source": _files,
    "file-sink": _files,
    "latency": _latency,
    "idle": _idle,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench-connect", description="What Connect costs.")
    parser.add_argument("--quick", action="store_true", help="small sizes: a tenth and less")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be repeated")
    parser.add_argument("--way", action="append", choices=["connect", "pyspark", "kafka"], help="only this way to copy")
    parser.add_argument("--records", type=int, default=1_000_000, help="rows from and to PostgreSQL")
    parser.add_argument("--parquet-records", type=int, default=10_000_000, help="records into Parquet files")
    parser.add_argument("--lines", type=int, default=2_000_000, help="lines from and to files")
    parser.add_argument("--samples", type=int, default=200, help="rows inserted one by one for the latency")
    parser.add_argument("--connectors", type=int, default=20, help="idle connectors")
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    parser.add_argument("--jar", default="", help="PostgreSQL's JDBC driver, for PySpark; the script fetches it")
    parser.add_argument("--no-save", dest="save", action="store_false", help="leave the results folder alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
