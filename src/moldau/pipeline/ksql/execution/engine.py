"""Statements carried out: each changes the catalogue, starts a query, or writes a record.

Nothing runs here. `Engine.execute` returns what its owner has to do: start the pipeline of a query, stop one, write a
record. A statement that fails leaves the catalogue as it was. Start at `Engine.execute`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.analysis.name_resolution import located
from moldau.pipeline.ksql.analysis.qualified_statement import qualified_text
from moldau.pipeline.ksql.analysis.query_analysis import QueryAnalysis, analyse
from moldau.pipeline.ksql.analysis.query_shape import QueryShape, changed_parts, shape_of
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue, QueryLinks, similar_names
from moldau.pipeline.ksql.catalogue.definitions import defined_source
from moldau.pipeline.ksql.catalogue.replacing import check_replacement
from moldau.pipeline.ksql.catalogue.services import Schemas, Topics
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.catalogue.topic_settings import topic_settings
from moldau.pipeline.ksql.catalogue.with_properties import CREATE_AS, INSERT, WithProperties
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.altering import altered_source
from moldau.pipeline.ksql.execution.insert_values import InsertedRecord, inserted_record
from moldau.pipeline.ksql.functions_in_use import using_functions
from moldau.pipeline.ksql.planning.query_plan import plan_rows
from moldau.pipeline.ksql.planning.relation import Graph
from moldau.pipeline.ksql.planning.sink_plan import add_sink, planned_insert, planned_sink
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["Engine", "Outcome", "PersistentQuery"]


@dataclass(frozen=True, slots=True)
class PersistentQuery:
    """A query that runs until it is terminated."""

    query_id: str
    statement: str
    topology: Topology
    sources: tuple[str, ...]
    """The names of the sources it reads."""
    source_topics: tuple[str, ...]
    sink: str
    sink_topic: str
    shape: QueryShape | None = None
    """What a query that replaces this one has to have in common with it."""
    columns: tuple[Column, ...] = ()
    """Of its result, those of the key first."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement did, and what its owner has to do."""

    message: str
    started: PersistentQuery | None = None
    stopped: tuple[str, ...] = ()
    record: InsertedRecord | None = None
    deleted_topic: str | None = None


@dataclass(slots=True)
class Engine:
    """Carries out statements on one catalogue."""

    topics: Topics
    schemas: Schemas
    settings: dict[str, object] = field(default_factory=dict)
    catalogue: Catalogue = field(default_factory=Catalogue)
    queries: dict[str, PersistentQuery] = field(default_factory=dict)
    functions: FunctionRegistry = BUILTIN
    """What statements can call."""

    def execute(self, statement: syntax.Statement, overrides: Mapping[str, object] | None = None) -> Outcome:
        """Carry out a statement; raises `KsqlError` for one that is refused, and then nothing has changed."""
        before = self.catalogue
        self.catalogue = before.copy()
        settings = {**self.settings, **(overrides or {})}
        try:
            with using_functions(self.functions):
                return self._execute(statement, settings)
        except FormatError as error:
            self.catalogue = before
            raise KsqlError(str(error)) from error
        except Exception:
            self.catalogue = before
            raise

    def _execute(self, statement: syntax.Statement, settings: Mapping[str, object]) -> Outcome:
        match statement:
            case syntax.CreateSource():
                return self._create(statement, settings)
            case syntax.CreateAsSelect():
                return self._create_as(statement, settings)
            case syntax.InsertSelect():
                return self._insert_select(statement, settings)
            case syntax.InsertValues():
                record = inserted_record(statement, self.catalogue, self.schemas)
                return Outcome("", record=record)
            case syntax.DropSource():
                return self._drop(statement)
            case syntax.AlterSource():
                source = altered_source(statement, self.catalogue)
                self.catalogue.sources[source.name] = source
                return Outcome(f"{statement.kind.value.capitalize()} {source.name} altered successfully.")
            case syntax.CreateType() | syntax.DropType():
                return self._type(statement)
            case syntax.SetProperty(name=name, value=value):
                self.settings[name] = value
                return Outcome(f"Successfully changed local property '{name}' to '{value}'.")
            case syntax.UnsetProperty(name=name):
                self.settings.pop(name, None)
                return Outcome(f"Successfully unset local property '{name}'.")
            case _:
                raise KsqlError(f"Unsupported statement here: {type(statement).__name__}")

    # --- CREATE

    def _create(self, statement: syntax.CreateSource, settings: Mapping[str, object]) -> Outcome:
        word = statement.kind.value.lower()
        existing = self._existing(statement.name, statement.kind, statement)
        if existing is not None and statement.if_not_exists:
            return Outcome(f"Cannot add {word} `{statement.name}`: A {word} with the same name already exists.")
        self._check_read_only_replacement(statement, existing)
        source = defined_source(statement, self.catalogue, self.topics, self.schemas, settings)
        if existing is not None:
            check_replacement(existing, source)
        self.catalogue.sources[source.name] = source
        return Outcome(f"{word.capitalize()} created")

    def _check_read_only_replacement(self, statement: syntax.CreateSource, existing: Source | None) -> None:
        word = statement.kind.value.lower()
        is_read_only = statement.is_read_only or (existing is not None and existing.is_read_only)
        if statement.or_replace and is_read_only:
            raise KsqlError(
                f"Cannot add {word} '{statement.name}': CREATE OR REPLACE is not supported on source {word}s."
            )

    def _existing(
        self, name: str, kind: syntax.SourceKind, statement: syntax.CreateSource | syntax.CreateAsSelect
    ) -> Source | None:
        """The source of that name; raises if it exists and must not."""
        existing = self.catalogue.sources.get(name)
        if existing is None:
            return None
        if not statement.if_not_exists and not statement.or_replace:
            word = kind.value.lower()
            raise KsqlError(
                f"Cannot add {word} '{name}': A {existing.kind.value.lower()} with the same name already exists"
            )
        return existing

    def _create_as(self, statement: syntax.CreateAsSelect, settings: Mapping[str, object]) -> Outcome:
        word = statement.kind.value.lower()
        existing = self._existing(statement.name, statement.kind, statement)
        if existing is not None and statement.if_not_exists:
            return Outcome(f"Cannot add {word} `{statement.name}`: A {word} with the same name already exists.")
        if existing is not None and existing.is_read_only:
            raise KsqlError(
                f"Cannot add {word} '{statement.name}': CREATE OR REPLACE is not supported on source {word}s."
            )
        properties = WithProperties.of(statement.properties, CREATE_AS)
        analysis = analyse(statement.query, self.catalogue)
        graph = Graph()
        with _quoting(statement, analysis):
            rows = plan_rows(analysis, graph, settings, sink=statement.name)
            sink = planned_sink(statement, properties, analysis, rows, settings)
            if existing is not None:
                check_replacement(existing, sink)
                self._check_query_replacement(existing, shape_of(analysis))
            self._prepare_topic(sink, properties)
            add_sink(graph, rows, sink, is_strict=_is_strict(settings))
        prefix = "CTAS" if sink.is_table else "CSAS"
        query_id = f"{prefix}_{statement.name}_{self.catalogue.next_query_number()}"
        stopped: tuple[str, ...] = ()
        if existing is not None and existing.query_id is not None:
            query_id, stopped = existing.query_id, (existing.query_id,)
        self.catalogue.sources[sink.name] = replace(sink, query_id=query_id)
        query = self._started(query_id, statement, analysis, graph, sink)
        return Outcome(f"Created query with ID {query_id}", started=query, stopped=stopped)

    def _check_query_replacement(self, existing: Source, shape: QueryShape) -> None:
        """Raise where the state of the query that writes a source is of no use to the one that shall replace it."""
        word = existing.kind.value.lower()
        others = [one for one in self.catalogue.writers_of(existing.name) if one != existing.query_id]
        if others:
            raise KsqlError(
                f"Cannot replace {word} '{existing.name}': other queries write into it as well: {', '.join(others)}. "
                "Terminate them first."
            )
        running = self.queries.get(existing.query_id or "")
        changed = [] if running is None or running.shape is None else changed_parts(running.shape, shape)
        if changed:
            raise KsqlError(
                f"Cannot replace {word} '{existing.name}': the new query has other {' and '.join(changed)}, which its "
                "state depends on. Filters, expressions and added columns may change; for anything else drop the "
                f"{word} and create it anew."
            )

    def _prepare_topic(self, sink: Source, properties: WithProperties) -> None:
        """Create the topic of a query's result and register its schemas."""
        found = self.topics.partitions(sink.topic)
        if found is None:
            settings = topic_settings(
                properties,
                is_table=sink.is_table,
                is_windowed=sink.window is not None,
                window_retention_ms=sink.window_retention_ms,
            )
            self.topics.create(sink.topic, sink.partitions, sink.replicas, settings)
        elif found != sink.partitions and properties.number("PARTITIONS") is not None:
            raise KsqlError(
                f"A Kafka topic with the name '{sink.topic}' already exists, with different partition/replica "
                f"configuration than required. KSQL expects {sink.partitions} partitions (topic has {found})"
            )
        parts = ((sink.key_format, sink.schema.key), (sink.value_format, sink.schema.value))
        for row_format, columns in parts:
            self.schemas.check(sink.topic, row_format, columns)
        for row_format, columns in parts:
            self.schemas.register(sink.topic, row_format, columns)

    def _started(
        self, query_id: str, statement: syntax.Statement, analysis: QueryAnalysis, graph: Graph, sink: Source
    ) -> PersistentQuery:
        """Note a query that its owner has to start."""
        read = [one.source for one in analysis.sources.sources]
        query = PersistentQuery(
            query_id,
            statement.text,
            graph.topology(),
            tuple(dict.fromkeys(source.name for source in read)),
            tuple(dict.fromkeys(source.topic for source in read)),
            sink.name,
            sink.topic,
            shape_of(analysis),
            sink.schema.key + sink.schema.value,
        )
        self.catalogue.queries[query_id] = QueryLinks(query_id, query.sources, sink.name)
        self.queries[query_id] = query
        return query

    # --- INSERT

    def _insert_select(self, statement: syntax.InsertSelect, settings: Mapping[str, object]) -> Outcome:
        properties = WithProperties.of(statement.properties, INSERT)
        target = self.catalogue.sources.get(statement.target)
        if target is None:
            hint = similar_names(statement.target, self.catalogue.sources)
            raise KsqlError(located(statement.target_location, f"Source `{statement.target}` does not exist.{hint}"))
        if target.is_read_only:
            word = target.kind.value.lower()
            raise KsqlError(f"Cannot insert into read-only {word}: {target.name}")
        analysis = analyse(statement.query, self.catalogue)
        graph = Graph()
        with _quoting(statement, analysis):
            rows = plan_rows(analysis, graph, settings, sink=statement.target)
            rows = planned_insert(graph, rows, target)
            add_sink(graph, rows, target, is_strict=_is_strict(settings))
        number = self.catalogue.next_query_number()
        query_id = properties.text("QUERY_ID") or f"INSERTQUERY_{number}"
        if query_id in self.catalogue.queries:
            raise KsqlError(f"Query ID '{query_id}' already exists.")
        query = self._started(query_id, statement, analysis, graph, target)
        return Outcome(f"Created query with ID {query_id}", started=query)

    # --- DROP and types

    def _drop(self, statement: syntax.DropSource) -> Outcome:
        word = statement.kind.value.lower()
        source = self.catalogue.sources.get(statement.name)
        if source is None:
            if statement.if_exists:
                return Outcome(f"Source `{statement.name}` does not exist.")
            hint = similar_names(statement.name, self.catalogue.sources)
            raise KsqlError(f"{word.capitalize()} {statement.name} does not exist.{hint}")
        if source.kind is not statement.kind:
            raise KsqlError(
                f"Incompatible data source type is {source.kind.value}, but statement was DROP {statement.kind.value}"
            )
        if statement.delete_topic and source.is_read_only:
            raise KsqlError(f"Cannot delete topic for read-only source: {source.name}")
        self._check_unused(source)
        own = () if source.query_id is None else (source.query_id,)
        for query_id in own:
            self.catalogue.queries.pop(query_id, None)
            self.queries.pop(query_id, None)
        del self.catalogue.sources[source.name]
        topic = source.topic if statement.delete_topic else None
        return Outcome(f"Source `{source.name}` (topic: {source.topic}) was dropped.", stopped=own, deleted_topic=topic)

    def _check_unused(self, source: Source) -> None:
        readers = self.catalogue.readers_of(source.name)
        writers = [one for one in self.catalogue.writers_of(source.name) if one != source.query_id]
        if readers or writers:
            raise KsqlError(
                f"Cannot drop {source.name}.\nThe following queries read from this source: "
                f"[{', '.join(readers)}].\nThe following queries write into this source: [{', '.join(writers)}].\n"
                f"You need to terminate them before dropping {source.name}."
            )

    def _type(self, statement: syntax.CreateType | syntax.DropType) -> Outcome:
        known = self.catalogue.types
        if isinstance(statement, syntax.CreateType):
            if statement.name in known:
                if statement.if_not_exists:
                    return Outcome(f"{statement.name} is already registered with type {known[statement.name]}")
                raise KsqlError(
                    f"Cannot register custom type '{statement.name}' since it is already registered with type: "
                    f"{known[statement.name]}"
                )
            known[statement.name] = self.catalogue.resolved(statement.type)
            return Outcome(f"Registered custom type with name '{statement.name}' and SQL type {known[statement.name]}")
        if statement.name not in known:
            if statement.if_exists:
                return Outcome(f"Type '{statement.name}' does not exist")
            raise KsqlError(f"Type {statement.name} does not exist.")
        del known[statement.name]
        return Outcome(f"Dropped type '{statement.name}'")


@contextmanager
def _quoting(statement: syntax.CreateAsSelect | syntax.InsertSelect, analysis: QueryAnalysis) -> Iterator[None]:
    """Errors of planning quote the statement with all its names resolved."""
    try:
        yield
    except (KsqlError, FormatError) as error:
        problem = error if isinstance(error, KsqlError) else KsqlError(str(error))
        problem.statement = qualified_text(statement, analysis)
        raise problem from error.__cause__


def _is_strict(settings: Mapping[str, object]) -> bool:
    return str(settings.get("ksql.timestamp.throw.on.invalid", "false")).lower() == "true"
