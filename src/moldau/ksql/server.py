"""One ksql server: the command topic behind it, the engine beside it, and what its endpoints do.

Commands are applied by one callback, in the order of the topic, whoever wrote them; after each, the engine is told
which queries are wanted. Start at `KsqlServer`; `instance` runs it as a process, `app` puts it behind HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import moldau
from moldau.client.admin import TopicDescription
from moldau.client.coordination.state_topic import StateTopic
from moldau.client.coordination.topic_log import LogRecord, LogWrite, TopicLog
from moldau.core.errors import MoldauError
from moldau.ksql.app import TextStream
from moldau.ksql.assertions import assert_schema, assert_topic
from moldau.ksql.cluster import KafkaCluster
from moldau.ksql.commands import Command, CommandError, CommandId
from moldau.ksql.descriptions import Descriptions
from moldau.ksql.documents import Document, command_status, current_status
from moldau.ksql.errors import ErrorKind, RequestError
from moldau.ksql.facts import Facts, Rehearsal
from moldau.ksql.inserts import insert_rows, serialized_record
from moldau.ksql.pipelines import pipeline_spec
from moldau.ksql.queries import Queries
from moldau.ksql.requests import QueryRequest, StatementRequest
from moldau.ksql.results import RowStream
from moldau.ksql.schemas import fresh_schemas, request_schemas
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.state import ServerState
from moldau.ksql.statement_runner import StatementRunner, Step
from moldau.ksql.table_copies import SESSION_WINDOW_BYTES, TIME_WINDOW_BYTES, TableCopies
from moldau.ksql.user_functions import user_functions
from moldau.pipeline.ksql.catalogue.services import Schemas, Topics
from moldau.pipeline.ksql.catalogue.sources import Source, WindowKind
from moldau.pipeline.ksql.execution.engine import Engine, PersistentQuery
from moldau.pipeline.ksql.execution.insert_values import InsertedRecord
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.runtime.hosting.engine_link import PipelineLink

__all__ = ["KsqlServer"]

CLIENT_ID = "ksql-server"
WRITE_MS = 20_000
CLOSE_S = 2.0
TERMINATED = CommandId("cluster", "TerminateCluster", "terminate")

_logger = logging.getLogger("moldau.ksql")


class KsqlServer:
    """Runs on one event loop. `link` leads to the engine process."""

    def __init__(self, settings: KsqlSettings, link: PipelineLink) -> None:
        self.settings = settings
        functions = user_functions(settings)
        self.state = ServerState(
            settings.statement_settings, functions=functions, query_defaults=settings.query_defaults
        )
        self.cluster = KafkaCluster(settings["bootstrap.servers"], settings.client_properties)
        self.copies = TableCopies(settings.state_folder / "tables.db", self.cluster)
        self._link = link
        self._log = self._new_log()
        self._runner = StatementRunner(self)
        self._descriptions = Descriptions(self.state, settings, functions, self)
        self._queries = Queries(self)
        self._is_ready = False

    def _new_log(self) -> TopicLog:
        settings = self.settings
        topic = StateTopic(
            name=settings.command_topic,
            servers=self.cluster.servers,
            client_id=CLIENT_ID,
            logger=_logger,
            timeout_ms=WRITE_MS,
            replication_factor=settings["ksql.internal.topic.replicas"],
            properties=settings.client_properties,
            is_compacted=False,
        )
        return TopicLog(topic, self._apply, timeout_ms=WRITE_MS, logger=_logger)

    async def start(self) -> None:
        """Read all commands, then have all queries run; raises `StartupError`."""
        await self._log.start(self.settings["moldau.init.timeout.ms"] / 1000)
        self._is_ready = True
        self._follow_tables()
        self.copies.start()
        self._link.start()
        for hosted in self.state.queries.values():
            self._link.want(pipeline_spec(hosted, self.settings))
        _logger.info("%d sources and %d queries are known", len(self.state.catalogue.sources), len(self.state.queries))

    async def stop(self) -> None:
        """Stop the queries' engine, unless it is shared, and the clients."""
        await self._queries.close()
        await self._link.stop()
        await self._log.stop(CLOSE_S)
        await asyncio.to_thread(self.copies.stop)
        await asyncio.to_thread(self.cluster.close)

    # Commands

    def _apply(self, record: LogRecord) -> None:
        try:
            command = Command.of_record(record.key, record.value)
        except CommandError as error:
            _logger.error("offset %d of %s: %s", record.offset, self.settings.command_topic, error)
            return
        if command.id == TERMINATED:
            self._terminate()
            return
        before = {query_id: (one, one.is_paused) for query_id, one in self.state.queries.items()}
        outcome = self.state.apply(command)
        if not self._is_ready or outcome is None:
            return
        self._follow_tables()
        for query_id in outcome.stopped:
            if query_id not in self.state.queries and query_id in before:
                self._link.unwant(pipeline_spec(before[query_id][0], self.settings), delete_state=True)
        for hosted in self.state.queries.values():
            if before.get(hosted.query_id) != (hosted, hosted.is_paused):
                self._link.want(pipeline_spec(hosted, self.settings))

    def _follow_tables(self) -> None:
        """Keep copies of the tables that can be asked: results of queries, and read-only ones."""
        wanted = {
            source.topic: source
            for source in self.state.catalogue.sources.values()
            if source.is_table and (source.query_id is not None or source.is_read_only)
        }
        for topic in self.copies.followed - wanted.keys():
            self.copies.forget(topic)
        for topic in wanted.keys() - self.copies.followed:
            source = wanted[topic]
            self.copies.follow(topic, source.partitions, _window_bytes(source))

    async def append(self, command: Command) -> int:
        """Write a command and wait until it is applied; its offset."""
        offsets = await self._log.append([LogWrite(command.key(), command.value())])
        return offsets[0]

    def _terminate(self) -> None:
        for hosted in self.state.queries.values():
            self._link.unwant(pipeline_spec(hosted, self.settings), delete_state=True)
        self.state.queries.clear()
        self.state.is_terminated = True

    # Statements

    async def run_statements(self, request: StatementRequest) -> list[Document]:
        """The answers to the statements of a request."""
        self._check_open()
        if request.sequence_number is not None:
            await self._await_command(request.sequence_number)
        substitutes = bool(self.settings["ksql.variable.substitution.enable"])
        return await self._runner.run(request, substitutes=substitutes)

    def _check_open(self) -> None:
        if self.state.is_terminated:
            raise RequestError(
                "The cluster has been terminated. No new requests will be accepted.", ErrorKind.SHUTTING_DOWN
            )
        if not self._is_ready:
            raise RequestError("Server initializing", ErrorKind.NOT_READY)

    async def _await_command(self, offset: int) -> None:
        timeout_s = self.settings["ksql.server.command.response.timeout.ms"] / 1000
        try:
            await asyncio.wait_for(self._log.wait_until_applied(offset), timeout_s)
        except (TimeoutError, MoldauError):
            raise RequestError(
                f"Timed out while waiting for a previous command to execute. command sequence number: {offset}",
                ErrorKind.COMMAND_QUEUE_TIMEOUT,
            ) from None

    async def answer(self, step: Step) -> Document:
        """The answer to a statement that shows something."""
        match step.statement:
            case syntax.AssertTopic() as statement:
                return await assert_topic(statement, self.cluster)
            case syntax.AssertSchema() as statement:
                return await assert_schema(statement, fresh_schemas(self.settings))
            case _:
                return await self._descriptions.answer(step.statement, step.properties, step.variables)

    @property
    def topics(self) -> Topics:
        """The cluster's topics."""
        return self.cluster

    def new_schemas(self) -> Schemas:
        """The registry, for one request."""
        return request_schemas(self.settings)

    def write_record(self, record: InsertedRecord) -> None:
        """Write the record of INSERT VALUES. Blocks."""
        key, value = serialized_record(record, self.settings)
        self.cluster.produce(record.source.topic, key, value, record.timestamp)

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Where topics end now. Blocks."""
        return self.cluster.end_offsets(topics)

    async def terminate_cluster(self, topic_patterns: list[str]) -> list[Document]:
        """End all queries, delete the matching topics that queries write, and accept nothing from then on."""
        self._check_open()
        try:
            patterns = [re.compile(one) for one in topic_patterns]
        except re.error as error:
            raise RequestError(f"deleteTopicList: {error.pattern!r} is not a pattern: {error}") from None
        sinks = {hosted.query.sink_topic for hosted in self.state.queries.values()}
        command = Command(id=TERMINATED, statement="TERMINATE CLUSTER;")
        offset = await self.append(command)
        await self._link.settle(CLOSE_S)
        for topic in sinks:
            if any(pattern.fullmatch(topic) for pattern in patterns):
                await asyncio.to_thread(self.cluster.delete, topic)
        await asyncio.to_thread(self.cluster.delete, self.settings.command_topic)
        status = command_status("QUEUED", "Statement written to command topic")
        return [current_status(command.statement, TERMINATED, status, offset)]

    # Queries and inserts

    async def open_query(self, request: QueryRequest) -> RowStream | TextStream:
        """The rows of a push or pull query, or the lines of PRINT."""
        self._check_open()
        return await self._queries.open(request)

    def push_query_id(self, query_id: str) -> str | None:
        """The id of the push query that a statement names; None if none runs."""
        return self._queries.running_id(query_id)

    def close_query(self, query_id: str) -> bool:
        """End a push query; False if there is none."""
        return self._queries.close_query(query_id)

    async def insert_rows(
        self, target: str, properties: Mapping[str, Any], rows: AsyncIterator[Mapping[str, Any]]
    ) -> AsyncGenerator[Document, None]:
        """Acknowledgements of rows, as they are stored."""
        self._check_open()
        return insert_rows(self, target, rows)

    def push_queries(self) -> Iterable[Document]:
        """The push queries that run, for SHOW QUERIES."""
        return self._queries.running()

    # Descriptions

    @property
    def host_name(self) -> str:
        return self.settings.host_name

    def topic_list(self) -> list[TopicDescription]:
        """All topics. Blocks."""
        return self.cluster.topics()

    def pipeline_status(self, query_id: str) -> Mapping[str, Any] | None:
        """What the engine last said of a query."""
        return self._link.status(f"{self.settings.query_prefix}{query_id}")

    async def explain_pipeline(self, query_id: str) -> str:
        """How a query runs on Spark."""
        return str(await self._link.ask("explain", f"{self.settings.query_prefix}{query_id}"))

    def plan(self, statement: syntax.Statement, properties: Mapping[str, Any]) -> PersistentQuery | None:
        """What a statement would run, without running it. Blocks."""
        if isinstance(statement, syntax.Query):
            return self._queries.plan_for_explain(statement, properties)
        rehearsal = Rehearsal(self.cluster, self.new_schemas())
        return self.state.engine_over(rehearsal, rehearsal).execute(statement, properties).started

    def current_engine(self) -> Engine:
        """The rules over what is known now, for questions that need nothing from outside."""
        return self.state.engine(Facts())

    # Facts about the server

    def info(self) -> Document:
        """`/info`."""
        return {
            "KsqlServerInfo": {
                "version": moldau.__version__,
                "kafkaClusterId": self._log.cluster_id,
                "ksqlServiceId": self.settings.service_id,
                "serverStatus": "RUNNING" if self._is_ready else "DEGRADED",
            }
        }

    def health(self) -> Document:
        """`/healthcheck`."""
        parts = {"metastore": self._is_ready, "kafka": self._log.is_ready, "commandRunner": self._is_ready}
        details = {name: {"isHealthy": is_healthy} for name, is_healthy in parts.items()}
        return {"isHealthy": all(parts.values()), "details": details, "serverState": "READY"}

    def metadata_id(self) -> Document:
        """`/v1/metadata/id`."""
        clusters = {"kafka-cluster": self._log.cluster_id, "ksql-cluster": self.settings.service_id}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    def cluster_status(self) -> Document:
        """`/clusterStatus`: this server."""
        return {
            "clusterStatus": {
                self.host_name: {
                    "hostAlive": True,
                    "lastStatusUpdateMs": 0,
                    "activeStandbyPerQuery": {},
                    "hostStoreLags": {"stateStoreLags": {}, "updateTimeMs": 0},
                }
            }
        }

    def command_statuses(self) -> Document:
        """`/status`."""
        return {"commandStatuses": {name: status["status"] for name, status in self.state.statuses.items()}}

    def command_status(self, command: CommandId) -> Document | None:
        """`/status/{type}/{entity}/{action}`; the entity may come with or without quotes."""
        bare = command.entity.strip("`")
        for entity in (command.entity, f"`{bare}`", f"`{bare.upper()}`", bare):
            found = self.state.statuses.get(str(CommandId(command.type, entity, command.action)))
            if found is not None:
                return found
        return None


def _window_bytes(source: Source) -> int:
    if source.window is None:
        return 0
    return SESSION_WINDOW_BYTES if source.window.kind is WindowKind.SESSION else TIME_WINDOW_BYTES
