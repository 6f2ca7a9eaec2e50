"""Answers to statements that show something: SHOW, DESCRIBE, EXPLAIN. Start at `Descriptions`.

What the server knows is in its state; what the cluster and the engine know is asked through `Surroundings`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from moldau.client.admin import TopicDescription
from moldau.core.errors import MoldauError
from moldau.ksql.api.documents import Document, column_field, entity, schema_info, source_fields, source_info
from moldau.ksql.query_statistics import statistics_documents, statistics_text
from moldau.ksql.settings import KSQL_KEYS, STREAMS_PREFIX, KsqlSettings
from moldau.ksql.statements.connectors import Connectors
from moldau.ksql.statements.state import HostedQuery, ServerState
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import PersistentQuery
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.statements import Listing, SourceKind

__all__ = ["Descriptions", "Surroundings"]

INTERNAL_TOPICS = ("_confluent-ksql-", "__", "_schemas")
IN_SERVER = "The server answers this query itself: record after record in memory, without a Spark pipeline."
STATES = {"RUNNING": "RUNNING", "ERROR": "ERROR", "PAUSED": "PAUSED"}
"""States of pipelines as states of queries; what is not here is starting, which counts as running."""

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+", re.IGNORECASE)


class Surroundings(Protocol):
    """What lies beyond the server's own state. Methods that ask brokers block."""

    def host_of(self, query_id: str) -> str: ...

    def topic_list(self) -> list[TopicDescription]: ...

    @property
    def host_name(self) -> str: ...

    async def query_numbers(self, query_id: str) -> Mapping[str, Any]:
        """What the engine has counted for a query; nothing where it cannot be asked."""

    def offset_summary(self, hosted: HostedQuery) -> Document:
        """How far the consumer group of a query is."""

    def pipeline_status(self, query_id: str) -> Mapping[str, Any] | None: ...

    async def explain_pipeline(self, query_id: str) -> str: ...

    def explain_plan(self, planned: PersistentQuery, properties: Mapping[str, Any]) -> str:
        """How a query would run on Spark, which need not run for that."""

    def push_queries(self) -> Iterable[Document]: ...

    def plan(self, statement: syntax.Statement, properties: Mapping[str, Any]) -> PersistentQuery | None:
        """What a statement would run, without running it; None if it would run nothing. Raises `KsqlError`."""


class Descriptions:
    def __init__(
        self, state: ServerState, settings: KsqlSettings, functions: FunctionRegistry, around: Surroundings
    ) -> None:
        self._state, self._settings, self._functions, self._around = state, settings, functions, around
        self._connectors = Connectors(str(settings["ksql.connect.url"]))

    async def answer(
        self, statement: syntax.Statement, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> Document:
        """The answer to a statement that shows something; raises `KsqlError`."""
        match statement:
            case syntax.Show(listing=listing):
                return await self._show(statement, listing, properties, variables)
            case syntax.DescribeSource(name=name, is_extended=is_extended):
                found = await self._source_description(self._source(name), is_extended=is_extended)
                return entity("sourceDescription", statement.text, sourceDescription=found)
            case syntax.DescribeSources(kind=kind, is_extended=is_extended):
                return await self._describe_all(statement, kind, is_extended=is_extended)
            case syntax.DescribeFunction(name=name):
                return self._function(statement, name)
            case syntax.Explain():
                return await self._explain(statement, properties)
            case syntax.CreateConnector() | syntax.DropConnector() | syntax.DescribeConnector():
                return await self._connectors.answer(statement)
            case _:
                raise KsqlError(f"This statement cannot be run here: {type(statement).__name__}")

    # SHOW

    async def _show(
        self, statement: syntax.Show, listing: Listing, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> Document:
        text = statement.text
        match listing:
            case Listing.STREAMS | Listing.TABLES:
                kind = SourceKind.STREAM if listing is Listing.STREAMS else SourceKind.TABLE
                if statement.is_extended:
                    return await self._describe_all(statement, kind, is_extended=True)
                member = listing.value.lower()
                return {**entity(member, text), member: [source_info(one) for one in self._sources(kind)]}
            case Listing.QUERIES:
                return self._queries(statement)
            case Listing.TOPICS:
                return await asyncio.to_thread(self._topics, statement)
            case Listing.FUNCTIONS:
                return entity("function_names", text, functions=self._function_names())
            case Listing.PROPERTIES:
                return self._properties(text, properties)
            case Listing.TYPES:
                types = {name: schema_info(one) for name, one in sorted(self._state.catalogue.types.items())}
                return entity("type_list", text, types=types)
            case Listing.VARIABLES:
                listed = [{"name": name, "value": value} for name, value in sorted(variables.items())]
                return entity("variables", text, variables=listed)
            case _:
                return await self._connectors.answer(statement)

    def _sources(self, kind: SourceKind) -> list[Source]:
        return sorted(
            (one for one in self._state.catalogue.sources.values() if one.kind is kind), key=lambda one: one.name
        )

    def _topics(self, statement: syntax.Show) -> Document:
        shown = [
            topic
            for topic in self._around.topic_list()
            if statement.show_all or not topic.name.startswith(INTERNAL_TOPICS)
        ]
        listed: list[Document] = []
        for topic in shown:
            document: Document = {
                "name": topic.name,
                "replicaInfo": [len(partition.replicas) for partition in topic.partitions],
            }
            if statement.is_extended:
                readers = [one for one in self._state.queries.values() if topic.name in one.query.source_topics]
                document |= {"consumerCount": len(readers), "consumerGroupCount": len(readers)}
            listed.append(document)
        return entity(
            "kafka_topics_extended" if statement.is_extended else "kafka_topics", statement.text, topics=listed
        )

    def _properties(self, text: str, properties: Mapping[str, Any]) -> Document:
        rows = [
            {"name": name, "scope": "KSQL", "value": _shown(value), "editable": False, "level": "SERVER"}
            for name, value in sorted(self._settings.values.items())
            if not _is_secret(name)
        ] + [
            {"name": STREAMS_PREFIX + name, "scope": "KSQL", "value": str(value), "editable": True, "level": "QUERY"}
            for name, value in sorted({**self._settings.query_defaults, **properties}.items())
        ]
        defaults = [name for name, key in KSQL_KEYS.items() if self._settings.values[name] == key.default]
        overwritten = sorted(STREAMS_PREFIX + name for name in properties)
        return entity(
            "properties", text, properties=rows, overwrittenProperties=overwritten, defaultProperties=defaults
        )

    # Functions

    def _function_names(self) -> list[Document]:
        found = [
            {"name": one.name.upper(), "type": one.kind.value, "category": one.category} for one in self._functions
        ]
        return sorted(found, key=lambda one: one["name"])

    def _function(self, statement: syntax.Statement, name: str) -> Document:
        found = self._functions.find(name)
        if found is None:
            raise KsqlError(f"Can't find any functions with the name '{name}'")
        functions = [
            {
                "arguments": [
                    {
                        "name": parameter.name,
                        "type": str(parameter.type),
                        "description": "",
                        "isVariadic": parameter.is_variadic,
                    }
                    for parameter in overload.signature.parameters
                ],
                "returnType": str(overload.signature.result),
                "description": found.description,
                "argumentTypes": [str(parameter.type) for parameter in overload.signature.parameters],
            }
            for overload in found.overloads
        ]
        return entity(
            "describe_function",
            statement.text,
            name=found.name.upper(),
            description=found.description,
            author=found.author,
            version=found.version,
            path=found.path,
            type=found.kind.value,
            functions=functions,
        )

    # DESCRIBE

    def _source(self, name: str) -> Source:
        found = self._state.catalogue.sources.get(name)
        if found is None:
            raise KsqlError(f"Could not find STREAM/TABLE '{name}' in the Metastore")
        return found

    async def _describe_all(self, statement: syntax.Statement, kind: SourceKind, *, is_extended: bool) -> Document:
        found = [await self._source_description(one, is_extended=is_extended) for one in self._sources(kind)]
        return entity("source_descriptions", statement.text, sourceDescriptions=found)

    async def _source_description(self, source: Source, *, is_extended: bool) -> Document:
        """A source with its queries; EXTENDED asks the brokers for its topic, and the engine for its queries."""
        found = await asyncio.to_thread(self.source_description, source, is_extended=is_extended)
        if not is_extended:
            return found
        around = dict.fromkeys(one["id"] for one in (*found["writeQueries"], *found["readQueries"]))
        numbers = {query_id: await self._around.query_numbers(query_id) for query_id in around}
        found["statistics"] = statistics_text(numbers)
        found["clusterStatistics"] = statistics_documents(numbers, self._around.host_name)
        return found

    def source_description(self, source: Source, *, is_extended: bool) -> Document:
        """What is known of a source without the engine."""
        readers = [one for one in self._state.queries.values() if source.name in one.query.sources]
        writers = [one for one in self._state.queries.values() if one.query.sink == source.name]
        partitions = replicas = 0
        summaries: list[Document] = []
        if is_extended:
            topic = next((one for one in self._around.topic_list() if one.name == source.topic), None)
            if topic is not None:
                partitions, replicas = len(topic.partitions), topic.replication_factor
            summaries = [self._around.offset_summary(one) for one in writers]
        return {
            "name": source.name,
            "windowType": None if source.window is None else source.window.kind.value,
            "readQueries": [self.running_query(one) for one in readers],
            "writeQueries": [self.running_query(one) for one in writers],
            "fields": source_fields(source),
            "type": source.kind.value,
            "timestamp": "" if source.timestamp is None else source.timestamp.name,
            "statistics": "",
            "errorStats": "",
            "extended": is_extended,
            "keyFormat": source.key_format.format.name,
            "valueFormat": source.value_format.format.name,
            "topic": source.topic,
            "partitions": partitions,
            "replication": replicas,
            "statement": source.statement if is_extended else "",
            "queryOffsetSummaries": summaries,
            "sourceConstraints": [one.query.sink for one in readers if one.query.sink in self._state.catalogue.sources],
            "clusterStatistics": [],
            "clusterErrorStats": [],
        }

    # Queries

    def state_of(self, hosted: HostedQuery) -> str:
        """The state of a query, by ksqlDB's names."""
        if hosted.is_paused:
            return "PAUSED"
        status = self._around.pipeline_status(hosted.query_id)
        return STATES.get(str(status["state"]), "RUNNING") if status is not None else "RUNNING"

    def running_query(self, hosted: HostedQuery) -> Document:
        """A row of SHOW QUERIES."""
        state = self.state_of(hosted)
        return {
            "queryString": hosted.query.statement,
            "sinks": [hosted.query.sink],
            "sinkKafkaTopics": [hosted.query.sink_topic],
            "id": hosted.query_id,
            "statusCount": {state: 1},
            "queryType": "PERSISTENT",
            "state": state,
        }

    def _queries(self, statement: syntax.Show) -> Document:
        hosted = list(self._state.queries.values())
        if statement.is_extended:
            found = [self._query_description(one, "", "") for one in hosted]
            return entity("query_descriptions", statement.text, queryDescriptions=found)
        listed = [self.running_query(one) for one in hosted] + list(self._around.push_queries())
        return entity("queries", statement.text, queries=listed)

    async def _explain(self, statement: syntax.Explain, properties: Mapping[str, Any]) -> Document:
        if statement.query_id is not None:
            hosted = self._state.queries.get(statement.query_id)
            if hosted is None:
                raise KsqlError(
                    f"Query with id:{statement.query_id} does not exist, "
                    "use SHOW QUERIES to view the full set of queries."
                )
            try:
                plan = await self._around.explain_pipeline(statement.query_id)
            except MoldauError as error:
                plan = f"not known yet: {error}"
            description = self._query_description(hosted, plan, hosted.query.topology.describe())
            return entity("queryDescription", statement.text, queryDescription=description)
        assert statement.statement is not None
        planned = await asyncio.to_thread(self._around.plan, statement.statement, properties)
        if planned is None:
            raise KsqlError("The provided statement does not run a ksql query")
        is_persistent = bool(planned.sink)
        explained = await asyncio.to_thread(self._around.explain_plan, planned, properties) if is_persistent else ""
        description = {
            **_empty_description(planned.query_id, _EXPLAIN.sub("", statement.text)),
            "sources": list(planned.sources),
            "sinks": [planned.sink] if planned.sink else [],
            "fields": [column_field(one) for one in planned.columns],
            "topology": planned.topology.describe(),
            "executionPlan": explained or IN_SERVER,
            "queryType": _query_type(statement.statement),
        }
        return entity("queryDescription", statement.text, queryDescription=description)

    def _query_description(self, hosted: HostedQuery, plan: str, topology: str) -> Document:
        sink = self._state.catalogue.sources.get(hosted.query.sink)
        status = self._around.pipeline_status(hosted.query_id) or {}
        state = self.state_of(hosted)
        return {
            **_empty_description(hosted.query_id, hosted.query.statement),
            "windowType": None if sink is None or sink.window is None else sink.window.kind.value,
            "fields": [] if sink is None else [column_field(one) for one in (*sink.schema.key, *sink.schema.value)],
            "sources": list(hosted.query.sources),
            "sinks": [hosted.query.sink],
            "topology": topology,
            "executionPlan": plan,
            "overriddenProperties": dict(hosted.properties),
            "ksqlHostQueryStatus": {self._around.host_of(hosted.query_id): state},
            "queryErrors": [
                {"timestamp": one["timestampMs"], "errorMessage": one["message"], "type": "UNKNOWN"}
                for one in status.get("failures", ())
            ],
            "consumerGroupId": f"{self._settings.query_prefix}{hosted.query_id}",
            "state": state,
        }


def _query_type(statement: syntax.Statement) -> str:
    if not isinstance(statement, syntax.Query):
        return "PERSISTENT"
    return "PULL" if statement.is_pull else "PUSH"


def _empty_description(query_id: str, text: str) -> Document:
    return {
        "id": query_id,
        "statementText": text,
        "windowType": None,
        "fields": [],
        "sources": [],
        "sinks": [],
        "topology": "",
        "executionPlan": "",
        "overriddenProperties": {},
        "ksqlHostQueryStatus": {},
        "queryType": "PERSISTENT",
        "queryErrors": [],
        "tasksMetadata": [],
        "consumerGroupId": "",
        "state": None,
    }


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return json.dumps(None) if value is None else str(value)


def _is_secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "user.info", "jaas", "token"))
