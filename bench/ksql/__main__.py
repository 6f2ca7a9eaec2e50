"""Command line of the measurements of SQL; each part prints its table as soon as it is done. Start at `main`."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.brokers import Moldau
from bench.ksql import fleet, latency, operators, pull, throughput
from bench.ksql.jobs import JOBS
from bench.machine import describe

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    options = _parser().parse_args()
    if options.quick:
        options.records, options.keys, options.samples = 100_000, [1_000], 20
        options.requests, options.queries = 500, 5
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "machine": describe(),
        "load average": os.getloadavg()[0],
        "options": {name: str(value) for name, value in vars(options).items()},
    }
    for name in options.part or PARTS:
        print(f"## {name}", flush=True)
        found[name] = PARTS[name](options)
        if options.save:
            RESULTS.mkdir(exist_ok=True)
            path = RESULTS / f"{found['date'][:10]}{'-quick' if options.quick else ''}.json"
            path.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _attempt(what: str, run: Callable[[str, Path], Any]) -> Any:
    """The numbers of one run with a broker of its own, or in words why there are none."""
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder, Moldau(Path(folder) / "broker") as broker:
        try:
            result = run(broker.bootstrap, Path(folder) / "app")
        except (RuntimeError, TimeoutError) as error:
            result = f"failed: {error}"
    print(f"{what}: {_shown(result)}", flush=True)
    return result


def _shown(result: Any) -> str:
    if isinstance(result, dict):
        return ", ".join(f"{name} {_shown(number)}" for name, number in result.items())
    return f"{result:,.2f}" if isinstance(result, float) else str(result)


def _throughput(options: argparse.Namespace) -> Any:
    found: dict[str, dict[str, Any]] = {}
    for name in options.job or JOBS:
        for way in options.way or throughput.WAYS:
            found.setdefault(name, {})[way] = _attempt(
                f"{JOBS[name].title}, {throughput.WAYS[way]}, records/s",
                lambda bootstrap, folder, name=name, way=way: throughput.measured(  # type: ignore[misc]
                    JOBS[name], way, bootstrap, folder, records=options.records, keys=10_000
                ),
            )
    return found


def _latency(options: argparse.Namespace) -> Any:
    found = {}
    for job in ("filter", "count"):
        for is_realtime in (False, True):
            what = f"{job}, {'real time' if is_realtime else 'micro-batches'}"
            found[what] = _attempt(
                what,
                lambda bootstrap, folder, job=job, is_realtime=is_realtime: latency.measured(  # type: ignore[misc]
                    job, is_realtime=is_realtime, bootstrap=bootstrap, folder=folder, samples=options.samples
                ),
            )
    return found


def _pull(options: argparse.Namespace) -> Any:
    found: dict[str, Any] = {}
    for keys in options.keys:
        found[f"ksql, {keys:,} keys"] = _attempt(
            f"pull by key, {keys:,} keys",
            lambda bootstrap, folder, keys=keys: pull.measured(  # type: ignore[misc]
                keys, bootstrap=bootstrap, folder=folder, requests=options.requests
            ),
        )
        found[f"PostgreSQL, {keys:,} keys"] = _attempt(
            f"PostgreSQL, {keys:,} keys",
            lambda bootstrap, folder, keys=keys: pull.postgres(  # type: ignore[misc]
                keys, folder, seconds=5 if options.quick else 20
            ),
        )
    return found


def _start(options: argparse.Namespace) -> Any:
    return _attempt("statement to first result, s", latency.first_result_s)


def _fleet(options: argparse.Namespace) -> Any:
    return _attempt(
        f"{options.queries} persistent queries",
        lambda bootstrap, folder: fleet.measured(
            options.queries, bootstrap=bootstrap, folder=folder, samples=max(2, options.samples // 10)
        ),
    )


def _operators(options: argparse.Namespace) -> Any:
    found = {}
    for name in options.job or JOBS:
        found[name] = operators.measured(JOBS[name], records=min(options.records, 50_000), keys=1_000)
        print(f"{JOBS[name].title}, CPU for a record: {_shown(found[name])}", flush=True)
    return found


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "operators": _operators,
    "throughput": _throughput,
    "latency": _latency,
    "pull": _pull,
    "start": _start,
    "fleet": _fleet,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench-ksql", description="What SQL costs.")
    parser.add_argument("--quick", action="store_true", help="small sizes: 100,000 records, 1,000 keys, 5 queries")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be repeated")
    parser.add_argument("--job", action="append", choices=list(JOBS), metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--way", action="append", choices=list(throughput.WAYS), help="only this way to run a job")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 1_000_000], help="sizes of the table to ask")
    parser.add_argument("--requests", type=int, default=5_000, help="pull queries of one measurement")
    parser.add_argument("--samples", type=int, default=100, help="records sent one by one for a latency")
    parser.add_argument("--queries", type=int, default=20, help="persistent queries on one server")
    parser.add_argument("--no-save", dest="save", action="store_false", help="leave the results folder alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
