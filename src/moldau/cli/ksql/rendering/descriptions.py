"""DESCRIBE, DESCRIBE EXTENDED, EXPLAIN and DESCRIBE FUNCTION as text. Start at `render_source`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from moldau.cli.ksql.rendering.schemas import field_table
from moldau.cli.ksql.rendering.tables import heading, java_text, label_line, table

__all__ = ["render_function", "render_query", "render_source"]

Document = Mapping[str, Any]
EXTENDED_HINT = "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;"
TEXT_WIDTH = 80
FUNCTION_LABEL_WIDTH = 12


def render_source(source: Document) -> list[str]:
    """A stream or table; EXTENDED adds its topic, queries, statistics and the positions of readers."""
    fields = field_table(source["fields"], is_table=source["type"] == "TABLE", window_type=source.get("windowType"))
    name = label_line("Name", source["name"])
    if not source.get("extended"):
        return [name, *fields, EXTENDED_HINT]
    topic = f"{source['topic']} (partitions: {source['partitions']}, replication: {source['replication']})"
    return [
        name,
        label_line("Type", source["type"]),
        label_line("Timestamp field", source.get("timestamp") or "Not set - using <ROWTIME>"),
        label_line("Key format", source["keyFormat"]),
        label_line("Value format", source["valueFormat"]),
        label_line("Kafka topic", topic),
        label_line("Statement", source.get("statement") or ""),
        "",
        *fields,
        *_constraints(source),
        *_queries("read from", source, "readQueries"),
        *_queries("write into", source, "writeQueries"),
        *_statistics(source),
        *_consumer_groups(source.get("queryOffsetSummaries") or ()),
    ]


def _constraints(source: Document) -> list[str]:
    names = source.get("sourceConstraints") or ()
    return ["", *heading("Sources that have a DROP constraint on this source"), *names] if names else []


def _queries(verb: str, source: Document, member: str) -> list[str]:
    queries = source.get(member) or ()
    if not queries:
        return []
    listed = [f"{one['id']} ({one.get('state', '')}) : {one['queryString']}" for one in queries]
    hint = "For query topology and execution plan please run: EXPLAIN <QueryId>"
    return ["", *heading(f"Queries that {verb} this {source['type']}"), *listed, "", hint]


def _statistics(source: Document) -> list[str]:
    lines = ["", *heading("Local runtime statistics")]
    lines += [text for text in (source.get("statistics"), source.get("errorStats")) if text]
    return [*lines, f"(Statistics of the local server's interaction with the Kafka topic {source['topic']})"]


def _consumer_groups(summaries: Sequence[Document]) -> list[str]:
    if not summaries:
        return []
    lines = ["", "Consumer Groups summary:"]
    for summary in summaries:
        lines += ["", label_line("Consumer Group", summary["groupId"])]
        for topic in summary.get("topicSummaries") or ():
            lines += ["", label_line("Kafka topic", topic["kafkaTopic"]), *_offsets(topic["offsets"])]
    return lines


def _offsets(offsets: Sequence[Document]) -> list[str]:
    if not offsets:
        return ["<no offsets committed by this group yet>"]
    rows = []
    for one in offsets:
        lag = max(one["logEndOffset"] - one["consumerOffset"], 0)
        rows.append([one["partition"], one["logStartOffset"], one["logEndOffset"], one["consumerOffset"], lag])
    columns = ["Partition", "Start Offset", "End Offset", "Offset", "Lag"]
    return [label_line("Max lag", max(row[-1] for row in rows)), "", *table(columns, rows)]


def render_query(query: Document) -> list[str]:
    """EXPLAIN: what a query reads and writes, and how it is run."""
    lines = [
        label_line("ID", query["id"]),
        label_line("Query Type", query.get("queryType")),
        label_line("SQL", query["statementText"]),
    ]
    if query.get("ksqlHostQueryStatus"):
        lines.append(label_line("Host Query Status", query["ksqlHostQueryStatus"]))
    if query.get("fields"):
        lines += ["", *field_table(query["fields"], is_table=False, window_type=query.get("windowType"))]
    lines += _named("Sources that this query reads from:", query.get("sources"), "source")
    lines += _named("Sinks that this query writes to:", query.get("sinks"), "sink")
    for title, member in (("Execution plan", "executionPlan"), ("Processing topology", "topology")):
        if query.get(member):
            lines += ["", *heading(title), *str(query[member]).rstrip("\n").split("\n")]
    overridden = query.get("overriddenProperties")
    if overridden:
        lines += ["", *heading("Overridden Properties"), *table(["Property", "Value"], sorted(overridden.items()))]
    return lines + _errors(query.get("queryErrors") or ())


def _named(title: str, names: Sequence[str] | None, kind: str) -> list[str]:
    if not names:
        return []
    hint = f"For {kind} description please run: DESCRIBE [EXTENDED] <{kind.capitalize()}Id>"
    return ["", *heading(title), *names, hint]


def _errors(errors: Sequence[Document]) -> list[str]:
    if not errors:
        return []
    rows = []
    for one in errors:
        time = datetime.fromtimestamp(one["timestamp"] / 1000, UTC)
        rows.append([f"{time:%Y-%m-%d %H:%M:%S} UTC", one.get("type"), one["errorMessage"]])
    return ["", *heading("Errors"), *table(["Time", "Type", "Error"], rows)]


def render_function(function: Document) -> list[str]:
    """DESCRIBE FUNCTION: the function and each of its forms."""
    lines = [_label("Name", function["name"])]
    lines += [_label(label, function[label.lower()]) for label in ("Author", "Version") if function.get(label.lower())]
    lines += _wrapped("Overview", function.get("description") or "", "")
    lines += [_label("Type", function["type"].lower()), _label("Jar", function.get("path") or "internal")]
    lines.append(_label("Variations", ""))
    for variation in function["functions"]:
        lines += ["", *_variation(function["name"], variation)]
    return lines


def _variation(name: str, variation: Document) -> list[str]:
    arguments = variation.get("arguments") or ()
    shown = ", ".join(
        f"{one['name']} {one['type']}{'[]' if one.get('isVariadic') else ''}".strip() for one in arguments
    )
    lines = ["\t" + _label("Variation", f"{name}({shown})"), "\t" + _label("Returns", variation["returnType"])]
    if variation.get("description"):
        lines += _wrapped("Description", variation["description"], "\t")
    for one in arguments:
        if one.get("description"):
            lines += _wrapped(one["name"], one["description"], "\t")
    return lines


def _label(label: str, value: Any) -> str:
    return f"{label:<{FUNCTION_LABEL_WIDTH}}: {java_text(value)}".rstrip()


def _wrapped(label: str, text: str, indent: str) -> list[str]:
    first, *more = textwrap.wrap(text, TEXT_WIDTH) or [""]
    return [indent + _label(label, first), *(f"{indent}{'':{FUNCTION_LABEL_WIDTH}}  {line}" for line in more)]
