"""The answer to a statement as text, by its `@type`. Start at `render_statement`.

A type that is not known here is shown as JSON, so that a newer server can be used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from moldau.cli.ksql.rendering.connectors import render_connector
from moldau.cli.ksql.rendering.descriptions import render_function, render_query, render_source
from moldau.cli.ksql.rendering.schemas import type_text
from moldau.cli.ksql.rendering.tables import first_line, table

__all__ = ["render_json", "render_statement"]

Document = Mapping[str, Any]
EXPLAIN_HINT = "For detailed information on a Query run: EXPLAIN <Query ID>;"


def render_statement(document: Document) -> list[str]:
    """The lines of one answer, with its warnings; empty for one that has nothing to show."""
    renderer = _RENDERERS.get(str(document.get("@type")))
    lines = render_json(document) if renderer is None else renderer(document)
    return lines + [f"WARNING: {one.get('message', '')}" for one in document.get("warnings") or ()]


def render_json(document: Any) -> list[str]:
    return json.dumps(document, indent=2, ensure_ascii=False).split("\n")


def _message(text: str) -> list[str]:
    return table(["Message"], [[first_line(text)]])


def _sources(label: str, member: str) -> Callable[[Document], list[str]]:
    columns = [label, "Kafka Topic", "Key Format", "Value Format", "Windowed"]

    def render(document: Document) -> list[str]:
        rows = [
            [one["name"], one["topic"], one.get("keyFormat", ""), one.get("valueFormat", ""), one.get("isWindowed")]
            for one in sorted(document[member], key=lambda one: str(one["name"]))
        ]
        return table(columns, rows)

    return render


def _topics(document: Document) -> list[str]:
    is_extended = document["@type"] == "kafka_topics_extended"
    columns = ["Kafka Topic", "Partitions", "Partition Replicas"]
    rows = []
    for topic in document["topics"]:
        replicas = topic["replicaInfo"]
        shown = replicas[:1] if len(set(replicas)) <= 1 else replicas
        row = [topic["name"], len(replicas), ", ".join(map(str, shown))]
        rows.append(row + ([topic["consumerCount"], topic["consumerGroupCount"]] if is_extended else []))
    return table(columns + (["Consumers", "ConsumerGroups"] if is_extended else []), rows)


def _queries(document: Document) -> list[str]:
    rows = [
        [
            query["id"],
            query["queryType"],
            ", ".join(f"{state}:{count}" for state, count in query.get("statusCount", {}).items())
            or query.get("state", ""),
            ",".join(query.get("sinks") or ()),
            ",".join(query.get("sinkKafkaTopics") or ()),
            " ".join(query["queryString"].split()),
        ]
        for query in document["queries"]
    ]
    columns = ["Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String"]
    return [*table(columns, rows), EXPLAIN_HINT]


def _properties(document: Document) -> list[str]:
    overwritten, defaults = set(document["overwrittenProperties"]), set(document["defaultProperties"])

    def origin(name: str) -> str:
        return "SESSION" if name in overwritten else "" if name in defaults else "SERVER"

    rows = [
        [one["name"], one.get("scope", ""), origin(one["name"]), one["value"]]
        for one in sorted(document["properties"], key=lambda one: str(one["name"]))
    ]
    return table(["Property", "Scope", "Default override", "Effective Value"], rows)


def _functions(document: Document) -> list[str]:
    found = sorted(document["functions"], key=lambda one: str(one["name"]))
    return table(["Function Name", "Category"], [[one["name"], one.get("category", "")] for one in found])


def _types(document: Document) -> list[str]:
    return table(["Type Name", "Schema"], [[name, type_text(one)] for name, one in sorted(document["types"].items())])


def _variables(document: Document) -> list[str]:
    return table(["Variable Name", "Value"], [[one["name"], one["value"]] for one in document["variables"]])


def _all_of(member: str, render: Callable[[Document], list[str]]) -> Callable[[Document], list[str]]:
    def render_all(document: Document) -> list[str]:
        lines: list[str] = []
        for number, one in enumerate(document[member]):
            lines += [""] * bool(number) + render(one)
        return lines

    return render_all


def _asserted(document: Document) -> list[str]:
    ending = "exists" if document.get("exists") else "does not exist"
    if document["@type"] == "assert_topic":
        return _message(f"Topic {document['topicName']} {ending}")
    named = [
        f"{label} {document[member]}"
        for label, member in (("subject name", "subject"), ("id", "id"))
        if document.get(member) is not None
    ]
    return _message(f"Schema with {' and '.join(named)} {ending}")


def _terminated(document: Document) -> list[str]:
    ending = "terminated." if document.get("wasTerminated") else "could not be terminated."
    return _message(f"Query {document['queryId']} {ending}")


_RENDERERS: dict[str, Callable[[Document], list[str]]] = {
    "currentStatus": lambda document: _message(document["commandStatus"]["message"]),
    "warning_entity": lambda document: _message(document["message"]),
    "terminate_query": _terminated,
    "streams": _sources("Stream Name", "streams"),
    "tables": _sources("Table Name", "tables"),
    "kafka_topics": _topics,
    "kafka_topics_extended": _topics,
    "queries": _queries,
    "properties": _properties,
    "function_names": _functions,
    "type_list": _types,
    "variables": _variables,
    "sourceDescription": lambda document: render_source(document["sourceDescription"]),
    "source_descriptions": _all_of("sourceDescriptions", render_source),
    "queryDescription": lambda document: render_query(document["queryDescription"]),
    "query_descriptions": _all_of("queryDescriptions", render_query),
    "describe_function": render_function,
    "connector_list": lambda document: table(
        ["Connector Name", "Type", "Class", "Status"],
        [[one["name"], one["type"], one["className"], one["state"]] for one in document["connectors"]],
    ),
    "connector_plugins_list": lambda document: table(
        ["Class", "Type", "Version"],
        [[one["className"], one["type"], one["version"]] for one in document["connectorsPlugins"]],
    ),
    "connector_info": lambda document: _message(f"Created connector {document['info']['name']}"),
    "drop_connector": lambda document: _message(f'Dropped connector "{document["connectorName"]}"'),
    "connector_description": render_connector,
    "assert_topic": _asserted,
    "assert_schema": _asserted,
}
