"""Command line of the comparison of stream processors: each job, each competitor, a fresh broker for every run.

Start at `main`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.brokers import ApacheKafka, BrokerProcess, Moldau
from bench.machine import describe, settle
from bench.streams import hosting
from bench.streams.competitors import COMPETITORS
from bench.streams.jobs import JOBS, Job
from bench.streams.measuring import Load, Measured, measured
from bench.streams.report import render, update_readme

MOST: dict[tuple[str, str | None], int] = {
    ("faust", None): 20_000,
    ("faust", "word-count"): 5_000,
    ("quix", None): 1_000_000,
    ("quix", "word-count"): 100_000,
}
"""How many records these get at most: a rate is a rate, and those who would take hours need not."""
RESULTS = Path(__file__).parent / "results"
BROKERS: dict[str, type[BrokerProcess]] = {"moldau": Moldau, "kafka": ApacheKafka}


def main() -> int:
    options = _parser().parse_args()
    if options.hosting:
        return _measure_hosting(options)
    if options.table:
        document: dict[str, Any] = json.loads(options.table.read_text())
    else:
        document = {
            "date": datetime.date.today().isoformat(),
            "machine": describe(),
            "broker": options.broker,
            "records": options.records,
            "results": _saved_today(options),
        }
        for name in options.only or list(JOBS):
            _measure(JOBS[name], options, document)
    text = render(document)
    print(text)
    if options.readme:
        update_readme(text, f"{document['records']:,} records")
    return 0


def _measure_hosting(options: argparse.Namespace) -> int:
    results: dict[str, dict[str, hosting.Hosted]] = {}
    for kind in options.kind or hosting.KINDS:
        for count in hosting.COUNTS:
            with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
                settle()
                with BROKERS[options.broker](Path(folder) / "broker") as broker:
                    found = hosting.hosted(kind, count, broker, Path(folder) / "app")
            results.setdefault(kind, {})[str(count)] = found
            shown = ", ".join(f"{name} {number:,.2f}" for name, number in found.items())
            print(f"  {count} x {hosting.KINDS[kind]}: {shown}", file=sys.stderr, flush=True)
    text = f"{datetime.date.today().isoformat()}, {', '.join(describe().values())}\n\n{hosting.render(results)}"
    print(text)
    if options.save:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{datetime.date.today().isoformat()}-hosting.json"
        path.write_text(json.dumps(results, indent=1) + "\n")
    if options.readme:
        update_readme(text, "hosting")
    return 0


def _measure(job: Job, options: argparse.Namespace, document: dict[str, Any]) -> None:
    chosen = [name for name in job.competitors if not options.competitor or name in options.competitor]
    runs: dict[str, list[Measured | str]] = {competitor: [] for competitor in chosen}
    document["results"].setdefault(job.name, {}).update(runs)
    # Round by round, because a machine has better and worse quarters of an hour.
    for competitor in chosen * options.rounds:
        result = _one_run(job, competitor, options)
        runs[competitor].append(result)
        shown = result if isinstance(result, str) else ", ".join(f"{k} {v:,.1f}" for k, v in result.items())
        print(f"  {job.title}: {COMPETITORS[competitor]}: {shown}", file=sys.stderr, flush=True)
        if options.save:
            RESULTS.mkdir(exist_ok=True)
            _results_file(options).write_text(json.dumps(document, indent=1) + "\n")


def _results_file(options: argparse.Namespace) -> Path:
    return RESULTS / f"{datetime.date.today().isoformat()}-{options.records}.json"


def _saved_today(options: argparse.Namespace) -> dict[str, Any]:
    """What has been measured today already, so that the jobs can be run one by one."""
    path = _results_file(options)
    if not options.save or not path.exists():
        return {}
    document: dict[str, Any] = json.loads(path.read_text())
    return dict(document["results"]) if document["broker"] == options.broker else {}


def _one_run(job: Job, competitor: str, options: argparse.Namespace) -> Measured | str:
    """Numbers, or in words why there are none."""
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        root = Path(folder)
        settle()
        with BROKERS[options.broker](root / "broker") as broker:
            most = MOST.get((competitor, job.name)) or MOST.get((competitor, None)) or options.records
            load = Load.of(min(most, options.records))
            try:
                return measured(job, competitor, broker, root / "app", load=load, samples=options.samples)
            except (RuntimeError, TimeoutError) as error:
                log = root / "app" / "output.log"
                tail = log.read_text(errors="replace")[-1500:] if log.exists() else ""
                print(f"{error}\n{tail}", file=sys.stderr)
                return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench-streams", description="Stream processors, side by side.")
    parser.add_argument("--only", action="append", choices=list(JOBS), metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--competitor", action="append", choices=list(COMPETITORS), metavar="NAME")
    parser.add_argument("--broker", choices=list(BROKERS), default="moldau")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=60, help="records sent one by one for the latency")
    parser.add_argument("--hosting", action="store_true", help="instead: what 1, 5 and 10 pipelines on one driver cost")
    parser.add_argument("--kind", action="append", choices=list(hosting.KINDS), help="with --hosting: only this kind")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-save", dest="save", action="store_false", help="leave the results folder alone")
    parser.add_argument("--readme", action="store_true", help="put the table into bench/streams/README.md")
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing; render a saved run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
