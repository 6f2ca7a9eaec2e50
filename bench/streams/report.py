"""The table of a run: a row for each job and competitor, and moldau's ratio to it."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from bench.streams.competitors import COMPETITORS
from bench.streams.jobs import JOBS

__all__ = ["render", "update_readme"]

README = Path(__file__).parent / "README.md"
GOALS = {
    ("copy", "pyspark"): 0.9,
    ("map-filter", "pyspark"): 0.9,
    ("count-cached", "pyspark"): 0.8,
    ("copy", "kafka-streams"): 0.6,
    ("count-cached", "kafka-streams"): 1.0,
    ("count", "kafka-streams"): 0.6,
    ("copy-eos", "kafka-streams"): 0.8,
    ("count-eos", "kafka-streams"): 0.8,
}
PYTHON_GOAL = 2.0


def render(document: dict[str, Any]) -> str:
    machine = ", ".join(document["machine"].values())
    head = (
        f"{document['date']}, {machine}; {document['records']:,} records of 100 B after a warm-up of 100,000, "
        f"4 partitions, broker: {document['broker']}"
    )
    lines = [
        head,
        "",
        "| job | processor | records/s | moldau is | goal | p50 ms | p90 ms | s to first output | CPU s/million | MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for job in (name for name in JOBS if name in document["results"]):
        by_competitor = document["results"][job]
        ours = _median(by_competitor.get("moldau", []), "records_per_s")
        title = JOBS[job].title
        for competitor in (name for name in JOBS[job].competitors if name in by_competitor):
            lines.append(_row(title, job, competitor, by_competitor[competitor], ours))
            title = ""
    return "\n".join(lines) + "\n"


def _row(title: str, job: str, competitor: str, runs: list[Any], ours: float | None) -> str:
    rate = _median(runs, "records_per_s")
    if rate is None:
        return f"| {title} | {COMPETITORS[competitor]} | {runs[-1]} |  |  |  |  |  |  |  |"
    ratio = None if ours is None or competitor == "moldau" else ours / rate
    goal = GOALS.get((job, competitor), PYTHON_GOAL if competitor in ("quix", "faust") else None)
    judged = "" if ratio is None or goal is None else f"≥ {goal:g}× {'met' if ratio >= goal else '**missed**'}"
    cells = [
        title,
        COMPETITORS[competitor],
        f"{rate:,.0f}",
        "" if ratio is None else f"{ratio:.2f}×",
        judged,
        *(f"{_median(runs, name) or 0:,.0f}" for name in ("p50_ms", "p90_ms")),
        f"{_median(runs, 'first_output_s') or 0:.1f}",
        f"{_median(runs, 'cpu_s_per_million') or 0:.1f}",
        f"{_median(runs, 'resident_mb') or 0:,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _median(runs: list[Any], name: str) -> float | None:
    found = [run[name] for run in runs if not isinstance(run, str)]
    return statistics.median(found) if found else None


def update_readme(text: str, part: str) -> None:
    """Replace what stands between the two marks of a part."""
    begin, end = f"<!-- {part}: written by scripts/bench-streams -->", f"<!-- end of {part} -->"
    before, mark, rest = README.read_text().partition(begin)
    if not mark:
        raise SystemExit(f"{README.name} has no place for this: put {begin!r} and {end!r} where the table should be")
    README.write_text(f"{before}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")
