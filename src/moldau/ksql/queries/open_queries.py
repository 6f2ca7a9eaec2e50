"""Push and pull queries and PRINT: opened for a client, closed when it goes away. Start at `Queries.open`."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from moldau.core.errors import MoldauError
from moldau.formats.types import Row
from moldau.ksql.api.app import TextStream
from moldau.ksql.api.documents import Document
from moldau.ksql.api.errors import ErrorKind, NotHereError, RequestError, StatementError
from moldau.ksql.api.requests import QueryRequest
from moldau.ksql.api.results import ResultRow, RowStream, StreamEnd
from moldau.ksql.cluster import KafkaCluster
from moldau.ksql.queries.prepared_pulls import PreparedPull, PreparedPulls, key_places, shape_of
from moldau.ksql.queries.printing import print_topic
from moldau.ksql.queries.pull_keys import sought_keys
from moldau.ksql.queries.pull_ranges import KeyRange, key_range
from moldau.ksql.queries.table_copies import StoredRow, TableCopies
from moldau.ksql.queries.topic_reading import TopicRecord, read_topics
from moldau.ksql.queries.transient_plan import RESULT_TOPIC, TransientPlan, check_pull, plan_query
from moldau.ksql.schemas import known_schemas, prepared_serdes, row_serde
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.statements.runner import Session, parsed_request
from moldau.ksql.statements.state import ServerState
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.records import OutputRecord
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.execution.engine import PersistentQuery
from moldau.pipeline.ksql.functions_in_use import using_functions
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["Queries"]

COMPLETE_S = 10.0
"""How long a pull query waits for a table that has just been created, or whose copy is being read again."""
FORWARD_S = 0.3
"""How long it waits where another server holds the table."""
KEYS_AT_ONCE = 20
"""So many rows are read without leaving the event loop."""
SHORT = 100
"""So many rows of a table are answered in one piece."""
SCALABLE = "SCALABLE_PUSH_QUERY"
LIMIT_REACHED, COMPLETED = "Limit Reached", "Query Completed"


class QueryServices(Protocol):
    """What queries need of the server."""

    @property
    def settings(self) -> KsqlSettings: ...

    @property
    def state(self) -> ServerState: ...

    @property
    def cluster(self) -> KafkaCluster: ...

    @property
    def copies(self) -> TableCopies: ...

    def holder_of(self, source: Source) -> str | None:
        """The URL of another server that is known to hold all of a table."""


@dataclass(slots=True)
class _Push:
    """A push query that runs."""

    text: str
    is_closed: asyncio.Event = field(default_factory=asyncio.Event)


class Queries:
    def __init__(self, server: QueryServices) -> None:
        self._server = server
        self._pushes: dict[str, _Push] = {}
        self._prepared = PreparedPulls()

    async def open(self, request: QueryRequest, *, may_forward: bool = False) -> RowStream | TextStream:
        """The rows of a query, or the lines of PRINT; raises `StatementError`.

        With `may_forward`, it raises `NotHereError` for a table that is not complete here, but on another server.
        """
        prepared = self._prepared.find(request, self._server.state)
        if prepared is not None and self._server.copies.is_complete(prepared[0].source.topic):
            return await self._prepared_rows(*prepared)
        session = Session(dict(request.properties), dict(request.variables))
        steps = await parsed_request(request.text, session)
        if len(steps) != 1:
            raise RequestError(f"Expected exactly one KSQL statement; found {len(steps)} instead")
        statement, properties = steps[0].statement, steps[0].properties
        try:
            match statement:
                case syntax.PrintTopic():
                    return await print_topic(self._server.cluster, statement, known_schemas(self._server.settings))
                case syntax.Query() if statement.is_pull:
                    stream = await self._pull(statement, properties, may_forward=may_forward)
                    self._prepare(request, statement)
                    return stream
                case syntax.Query():
                    return await self._push(statement, properties)
        except (RequestError, NotHereError):
            raise
        except MoldauError as error:
            kind = StatementError if isinstance(statement, syntax.Query) and statement.is_pull else None
            if kind is not None:
                raise StatementError(str(error), statement.text) from None
            raise RequestError(str(error), ErrorKind.BAD_STATEMENT) from None
        raise RequestError(f"Statement type `{type(statement).__name__}` not supported for this resource")

    # Push queries

    async def _push(self, query: syntax.Query, properties: Mapping[str, Any]) -> RowStream:
        settings = self._server.settings
        if len(self._pushes) >= settings["ksql.max.push.queries"]:
            raise RequestError(
                f"Maximum number of push queries exceeded: {len(self._pushes)} run, ksql.max.push.queries allows "
                f"{settings['ksql.max.push.queries']}",
                ErrorKind.MAX_PUSH_QUERIES,
            )
        plan = await asyncio.to_thread(self._plan, query, properties)
        reset = self._server.state.with_defaults(properties).get("auto.offset.reset", "latest")
        is_latest = str(reset).lower() == "latest"
        is_scalable = is_latest and plan.is_scalable
        prefix = SCALABLE if is_scalable else f"transient_{query.source.name}"
        query_id = f"{prefix}_{secrets.randbits(62)}"
        push = self._pushes[query_id] = _Push(query.text)
        records = read_topics(
            self._server.cluster,
            [source.topic for source in plan.sources],
            from_end=is_latest,
            until=push.is_closed,
            skips_null_keys=is_scalable,
        )
        await records.start()
        rows = self._pushed_rows(plan, query, query_id, records.batches())
        return RowStream(query_id, plan.columns, rows, is_endless=True)

    async def _pushed_rows(
        self,
        plan: TransientPlan,
        query: syntax.Query,
        query_id: str,
        batches: AsyncGenerator[list[TopicRecord], None],
    ) -> AsyncGenerator[ResultRow | StreamEnd, None]:
        left = query.limit
        run = self._new_run(plan)
        # Only a condition can leave out a row whose deletion the client must not see.
        shown: set[bytes] | None = None if query.where is None and query.having is None else set()
        try:
            if left == 0:
                yield StreamEnd(LIMIT_REACHED)
                return
            async with contextlib.aclosing(batches):
                async for batch in batches:
                    for row in await asyncio.to_thread(self._results, run, plan, batch, shown):
                        yield row
                        if left is not None:
                            left -= 1
                            if left == 0:
                                yield StreamEnd(LIMIT_REACHED)
                                return
        finally:
            self._pushes.pop(query_id, None)
            run.close()

    def running_id(self, query_id: str) -> str | None:
        """The id of the push query that a statement names, in which unquoted names are in upper case; None if none."""
        return next((known for known in self._pushes if known.upper() == query_id.upper()), None)

    def close_query(self, query_id: str) -> bool:
        """End a push query; False if there is none."""
        push = self._pushes.get(query_id)
        if push is None:
            return False
        push.is_closed.set()
        return True

    async def close(self) -> None:
        """End all push queries."""
        for push in self._pushes.values():
            push.is_closed.set()

    def running(self) -> Iterable[Document]:
        """The push queries that run, for SHOW QUERIES."""
        return [
            {
                "queryString": push.text,
                "sinks": [],
                "sinkKafkaTopics": [],
                "id": query_id,
                "statusCount": {"RUNNING": 1},
                "queryType": "PUSH",
                "state": "RUNNING",
            }
            for query_id, push in self._pushes.items()
        ]

    # Pull queries

    async def _pull(self, query: syntax.Query, properties: Mapping[str, Any], *, may_forward: bool) -> RowStream:
        state = self._server.state
        settings = {**state.settings, **properties}
        check_pull(query, state.catalogue, settings)
        plan = await asyncio.to_thread(self._plan, query, properties)
        source = plan.sources[0]
        if source.is_table:
            with using_functions(state.functions):
                keys = sought_keys(query, source, settings, self._server.settings)
                part = key_range(query, source) if keys is None else None
            await asyncio.to_thread(self._await_table, source, may_forward=may_forward)
            rows = await asyncio.to_thread(self._table_rows, plan, query, keys, part)
            return self._row_stream(plan, rows)
        return RowStream(_pull_id(), plan.columns, self._stream_rows(plan, query))

    async def _prepared_rows(self, prepared: PreparedPull, keys: list[bytes]) -> RowStream:
        """The rows of some keys, read by the event loop itself: going to a thread and back costs more than they do."""
        rows_of_key = self._server.copies.rows_of_key
        if prepared.may_wait or len(keys) > KEYS_AT_ONCE:
            rows = await asyncio.to_thread(prepared.rows, keys, rows_of_key)
        else:
            rows = prepared.rows(keys, rows_of_key)
        return self._row_stream(prepared.plan, rows)

    def _prepare(self, request: QueryRequest, query: syntax.Query) -> None:
        """Be ready for other keys, if this query is a look-up of keys in a table."""
        state = self._server.state
        source = state.catalogue.sources[query.source.name]
        places = key_places(query, source) if source.is_table and shape_of(request.text) is not None else None
        if places is None:
            return
        plan = self._plan(replace(query, where=None), request.properties)
        run = self._new_run(plan)
        serde = row_serde(source.key_format.for_key(source.schema.key), source.schema.key, self._server.settings)
        formats = (source.key_format.format, source.value_format.format)
        prepared = PreparedPull(
            plan,
            places,
            query.limit,
            serialize_key=lambda key: serde.serialize(source.topic, key),
            compute=lambda stored: self._results(run, plan, _as_records(source.topic, stored)),
            may_wait=any(one.uses_registry for one in formats) or state.functions is not BUILTIN,
        )
        self._prepared.keep(request, state, prepared)

    @staticmethod
    def _row_stream(plan: TransientPlan, rows: list[ResultRow]) -> RowStream:
        return RowStream(
            _pull_id(),
            plan.columns,
            _given(rows),
            key_names=plan.key_names,
            header_marks=plan.header_marks,
            is_short=len(rows) <= SHORT,
        )

    def _await_table(self, source: Source, *, may_forward: bool) -> None:
        """Return when all of a table is here; raises `NotHereError` where another server has it already."""
        copies, topic = self._server.copies, source.topic
        if copies.is_complete(topic):
            return
        ends = self._server.cluster.end_offsets([topic])[topic]
        holder = self._server.holder_of(source) if may_forward else None
        if copies.wait_until(topic, ends, COMPLETE_S if holder is None else FORWARD_S):
            return
        if holder is not None:
            raise NotHereError(holder)
        raise RequestError(
            f"The table {source.name} is still being read from its topic {topic}; try again later", ErrorKind.NOT_READY
        )

    def _table_rows(
        self, plan: TransientPlan, query: syntax.Query, keys: list[bytes] | None, part: KeyRange | None
    ) -> list[ResultRow]:
        copies, source = self._server.copies, plan.sources[0]
        stored: Iterable[StoredRow]
        if part is not None:
            stored = copies.rows_in_range(source.topic, *part)
        elif keys is None:
            stored = copies.all_rows(source.topic)
        else:
            stored = [row for key in keys for row in copies.rows_of_key(source.topic, key)]
        run = self._new_run(plan)
        try:
            rows = self._results(run, plan, _as_records(source.topic, stored))
        finally:
            run.close()
        return rows if query.limit is None else rows[: query.limit]

    async def _stream_rows(
        self, plan: TransientPlan, query: syntax.Query
    ) -> AsyncGenerator[ResultRow | StreamEnd, None]:
        """All rows that are in the topic now."""
        left = query.limit
        reading = read_topics(
            self._server.cluster, [plan.sources[0].topic], from_end=False, until=asyncio.Event(), stops_at_end=True
        )
        await reading.start()
        run = self._new_run(plan)
        try:
            async with contextlib.aclosing(reading.batches()) as batches:
                async for batch in batches:
                    for row in await asyncio.to_thread(self._results, run, plan, batch):
                        if left == 0:
                            yield StreamEnd(LIMIT_REACHED)
                            return
                        yield row
                        left = None if left is None else left - 1
            yield StreamEnd(LIMIT_REACHED if left == 0 else COMPLETED)
        finally:
            run.close()

    # Rows

    def _plan(self, query: syntax.Query, properties: Mapping[str, Any]) -> TransientPlan:
        state = self._server.state
        with using_functions(state.functions):
            return plan_query(query, state.catalogue, {**state.settings, **properties})

    def plan_for_explain(self, query: syntax.Query, properties: Mapping[str, Any]) -> PersistentQuery:
        """A query for a client as EXPLAIN shows it."""
        plan = self._plan(query, properties)
        topics = tuple(source.topic for source in plan.sources)
        names = tuple(source.name for source in plan.sources)
        return PersistentQuery("", query.text, plan.topology, names, topics, "", "", columns=plan.columns)

    def _new_run(self, plan: TransientPlan) -> InMemoryRun:
        partitions = max(source.partitions for source in plan.sources)
        settings = TaskSettings(cache_max_bytes=0, deserialization_handler=log_and_continue)
        return InMemoryRun(prepared_serdes(plan.topology, self._server.settings), settings, partitions=partitions)

    def _results(
        self, run: InMemoryRun, plan: TransientPlan, records: list[TopicRecord], shown: set[bytes] | None = None
    ) -> list[ResultRow]:
        """The rows that records give; `shown` are the keys of a table's rows that the client has."""
        for record in records:
            run.pipe(
                record.topic,
                record.key,
                record.value,
                record.timestamp,
                headers=record.headers,
                partition=record.partition,
                offset=record.offset,
            )
        made = [one for one in run.drain() if one.topic == RESULT_TOPIC]
        if plan.is_table and shown is not None:
            made = [one for one in made if _is_news(one, shown)]
        return [row for one in made if (row := _result_row(plan, one))]


def _as_records(topic: str, rows: Iterable[StoredRow]) -> list[TopicRecord]:
    return [
        TopicRecord(topic, row.partition, row.key, row.value, row.timestamp, row.offset, row.headers) for row in rows
    ]


def _pull_id() -> str:
    return f"query_{secrets.randbits(62)}"


def _is_news(made: OutputRecord, shown: set[bytes]) -> bool:
    """False for the deletion of a row that the client never had: one that WHERE has always left out."""
    key = made.key or b""
    if made.value is not None:
        shown.add(key)
        return True
    if key not in shown:
        return False
    shown.remove(key)
    return True


def _result_row(plan: TransientPlan, made: OutputRecord) -> ResultRow | None:
    if made.value is not None:
        row: Row | None = plan.value_serde.deserialize(RESULT_TOPIC, made.value)
        return None if row is None else ResultRow(row)
    if not plan.is_table or made.key is None:
        return None
    key = plan.key_serde.deserialize(RESULT_TOPIC, made.key)
    window = getattr(key, "window", None)
    parts = (*key,) if window is None else (*key.key, window.start, window.end)
    return ResultRow(tuple(None if place is None else parts[place] for place in plan.key_places), is_tombstone=True)


async def _given(rows: list[ResultRow]) -> AsyncGenerator[ResultRow | StreamEnd, None]:
    for row in rows:
        yield row
