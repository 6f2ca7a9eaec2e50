"""Results as people read them: Markdown tables with ratios and goals, and the JSON they are made from.

Pure text in, text out; `save` and `update_readme` are the only two that touch files. Start at `comparison_table`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.clusters import CLUSTER_WORKLOADS
from bench.goals import GOALS
from bench.rounds import Results, medians
from bench.workloads import WORKLOADS, Metric

__all__ = ["comparison_table", "growth_tables", "render", "save", "update_readme"]

FOLDER = Path(__file__).parent
BEGIN, END = "<!-- results: written by scripts/bench -->", "<!-- end of results -->"


def render(document: dict[str, Any]) -> str:
    """The whole report of one run."""
    machine = document["machine"]
    about = (
        f"{document['date']}, {machine['processor']}, {machine['memory']}, {machine['system']}, "
        f"Python {machine['python']}, librdkafka {document['librdkafka']}, Apache Kafka {document['kafka']}; "
        f"medians of {document['rounds']}"
    )
    parts = [about]
    if document["results"]:
        parts += [comparison_table(document["results"]), summary(document["results"])]
    parts += growth_tables(document["growth"])
    return "\n\n".join(parts) + "\n"


def comparison_table(results: Results) -> str:
    rows = [["workload", "", "Kafka", "moldau", "ratio", "goal"]]
    for workload in (*WORKLOADS, *CLUSTER_WORKLOADS):
        if workload.name not in results:
            continue
        kafka, moldau = (medians(results[workload.name].get(name, [])) for name in ("Kafka", "moldau"))
        title = workload.title
        for metric in workload.metrics:
            cells = _cells(workload.name, metric, kafka.get(metric.key), moldau.get(metric.key))
            rows.append([title, metric.unit, *cells])
            title = ""
    return _markdown(rows)


def _cells(workload: str, metric: Metric, kafka: float | None, moldau: float | None) -> list[str]:
    ratio = moldau / kafka if kafka and moldau is not None else None
    goal = GOALS.get((workload, metric.key))
    verdict = ""
    if goal:
        verdict = f"{goal} {'–' if ratio is None else 'met' if goal.is_met_by(ratio) else '**missed**'}"
    return [_number(kafka), _number(moldau), "–" if ratio is None else f"{ratio:.2f}×", verdict]


def summary(results: Results) -> str:
    """One line: how many goals were measured, met, and which were missed."""
    met, missed = 0, []
    for (workload, key), goal in GOALS.items():
        kafka, moldau = (medians(results.get(workload, {}).get(name, [])).get(key) for name in ("Kafka", "moldau"))
        if not kafka or moldau is None:
            continue
        if goal.is_met_by(moldau / kafka):
            met += 1
        else:
            missed.append(f"{workload} {key} {moldau / kafka:.2f}× (goal {goal})")
    line = f"Goals met: {met} of {met + len(missed)}."
    return line + (f" Missed: {'; '.join(missed)}." if missed else "")


def growth_tables(growth: dict[str, dict[str, list[dict[str, float]]]]) -> list[str]:
    titles = {"partitions": "Growth with partitions", "data": "Growth with data, one partition"}
    measured = {kind: by_broker for kind, by_broker in growth.items() if any(by_broker.values())}
    return [f"### {titles[kind]}\n\n{_growth_table(by_broker)}" for kind, by_broker in measured.items()]


def _growth_table(by_broker: dict[str, list[dict[str, float]]]) -> str:
    columns = list(next(rows[0] for rows in by_broker.values() if rows))
    rows = [["broker", *(column.replace("_", " ") for column in columns)]]
    for broker, measured in by_broker.items():
        rows += [[broker, *(_number(row[column]) for column in columns)] for row in measured]
    return _markdown(rows)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return "\n".join([line(rows[0]), line("---" for _ in rows[0]), *map(line, rows[1:])])


def save(document: dict[str, Any]) -> Path:
    """Keep the numbers as `results/<date>.json`; a later run of the same day with other workloads is merged in."""
    folder = FOLDER / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{document['date']}.json"
    if path.exists():
        earlier = json.loads(path.read_text())
        document["results"] = earlier["results"] | document["results"]
        document["growth"] = earlier["growth"] | document["growth"]
    path.write_text(json.dumps(_rounded(document), indent=1, ensure_ascii=False) + "\n")
    return path


def _rounded(value: Any) -> Any:
    """Four digits are all that noise leaves, and keep the file small."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def update_readme(text: str) -> None:
    """Put the report between the two markers of bench/README.md."""
    readme = FOLDER / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
