"""Command line of the benchmark: choose workloads, start both brokers, measure in turns, print the tables.

Start at `main`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import clients, growth, report
from bench.brokers import ApacheKafka, BrokerProcess, Moldau
from bench.clusters import CLUSTER_WORKLOADS, measure_clusters
from bench.machine import describe, settle, touch_memory
from bench.rounds import Results, measure_all, warm_up
from bench.workloads import FULL, QUICK, TINY, WORKLOADS, Scale, Workload

KINDS: dict[str, type[BrokerProcess]] = {"kafka": ApacheKafka, "moldau": Moldau}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    if arguments.list:
        shown = [f"{w.name:24} {w.title}" for w in (*WORKLOADS, *CLUSTER_WORKLOADS)]
        print("\n".join([*shown, "growth-partitions", "growth-data"]))
        return 0
    document: dict[str, Any]
    if arguments.table:
        document = json.loads(Path(arguments.table).read_text())
    else:
        scale = _scale(arguments)
        document = _new_document(scale)
        try:
            _measure(arguments, scale, document)
        finally:
            # An hour of measuring that is interrupted has still measured something.
            if arguments.save and not arguments.tiny:
                _say(f"saved in {report.save(document)}")
    text = report.render(document)
    print(text)
    if arguments.readme:
        report.update_readme(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Apache Kafka and moldau, side by side.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one round, less data, the main workloads: a few minutes")
    size.add_argument("--tiny", action="store_true", help="only shows that everything runs; the numbers mean nothing")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a workload or its prefix")
    parser.add_argument("--brokers", default="kafka,moldau", help="which to run; one alone gives no ratios")
    parser.add_argument("--rounds", type=int, help="runs per workload and broker")
    parser.add_argument("--growth-gb", type=float, default=20, help="largest data size of growth-data")
    parser.add_argument("--folder", type=Path, help="where the brokers keep their data (default: the temporary folder)")
    parser.add_argument("--no-save", dest="save", action="store_false", help="leave bench/results alone")
    parser.add_argument("--readme", action="store_true", help="put the tables into bench/README.md")
    parser.add_argument("--table", metavar="FILE", help="measure nothing; render the tables of a saved run")
    parser.add_argument("--list", action="store_true", help="name the workloads")
    return parser


def _scale(arguments: argparse.Namespace) -> Scale:
    scale = TINY if arguments.tiny else QUICK if arguments.quick else FULL
    return replace(scale, rounds=arguments.rounds) if arguments.rounds else scale


def _new_document(scale: Scale) -> dict[str, Any]:
    return {
        "date": datetime.date.today().isoformat(),
        "machine": describe(),
        "librdkafka": clients.librdkafka_version(),
        "kafka": ApacheKafka.VERSION,
        "rounds": scale.rounds,
        "results": {},
        "growth": {},
    }


def _measure(arguments: argparse.Namespace, scale: Scale, document: dict[str, Any]) -> None:
    """Fill the document as numbers come in."""
    is_short = arguments.quick or arguments.tiny
    workloads = _chosen(arguments.only, is_short)
    kinds = [KINDS[name] for name in arguments.brokers.split(",")]
    with tempfile.TemporaryDirectory(prefix="moldau-bench-", dir=arguments.folder) as name:
        folder = Path(name)
        _say("touching memory")
        touch_memory(folder, 200_000_000 if arguments.tiny else 1_500_000_000)
        if workloads:
            _side_by_side(kinds, workloads, scale, folder, document["results"])
        _clusters(arguments, kinds, scale, folder, document["results"])
        _growth(arguments, kinds, folder, document["growth"])


def _side_by_side(
    kinds: Sequence[type[BrokerProcess]], workloads: Sequence[Workload], scale: Scale, folder: Path, results: Results
) -> None:
    with ExitStack() as stack:
        brokers = []
        for kind in kinds:
            _say(f"starting {kind.name}")
            brokers.append(stack.enter_context(kind(Path(tempfile.mkdtemp(prefix=kind.name, dir=folder)))))
        _say("warming up")
        warm_up(brokers, scale)
        measure_all(workloads, brokers, scale, results, _say)


def _clusters(
    arguments: argparse.Namespace,
    kinds: Sequence[type[BrokerProcess]],
    scale: Scale,
    folder: Path,
    results: Results,
) -> None:
    is_short = arguments.quick or arguments.tiny
    wanted = [w for w in CLUSTER_WORKLOADS if _is_wanted(w.name, arguments.only, default=w.is_quick or not is_short)]
    if wanted:
        measure_clusters(wanted, kinds, scale, folder, results, _say)


def _growth(
    arguments: argparse.Namespace,
    kinds: Sequence[type[BrokerProcess]],
    folder: Path,
    tables: dict[str, dict[str, list[dict[str, float]]]],
) -> None:
    """Growth runs one broker at a time; part of the full benchmark and of `--only growth`."""
    is_short = arguments.quick or arguments.tiny
    if _is_wanted("growth-partitions", arguments.only, default=not is_short):
        counts = growth.PARTITIONS[:3] if is_short else growth.PARTITIONS
        load_bytes = 20_000_000 if is_short else 200_000_000
        rows = tables["partitions"] = {}
        for kind in kinds:
            settle()
            found = rows[kind.name] = []
            growth.collect(kind.name, growth.by_partitions(kind, folder, counts, load_bytes), found, _say)
    if _is_wanted("growth-data", arguments.only, default=not is_short):
        largest_bytes = min(arguments.growth_gb, 0.1 if is_short else 1000) * 1e9
        sizes = [size for size in growth.DATA_BYTES if size <= largest_bytes]
        rows = tables["data"] = {}
        for kind in kinds:
            settle()
            found = rows[kind.name] = []
            growth.collect(kind.name, growth.by_data(kind, folder, sizes), found, _say)


def _chosen(only: Sequence[str], is_short: bool) -> list[Workload]:
    return [w for w in WORKLOADS if _is_wanted(w.name, only, default=w.is_quick or not is_short)]


def _is_wanted(name: str, only: Sequence[str], *, default: bool) -> bool:
    return any(name.startswith(prefix) for prefix in only) if only else default


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
