"""One ksql server: the command topic behind it, the engine beside it, and what its endpoints do.

Commands are applied by one callback, in the order of the topic, whoever wrote them; after each, the engine is told
which queries are wanted. Start at `KsqlServer`; `instance` runs it as a process, `api.app` puts it behind HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import moldau
from moldau.client.admin import TopicDescription
from moldau.client.coordination.state_topic import StateTopic
from moldau.client.coordination.topic_log import LogRecord, LogWrite, TopicLog
from moldau.core.errors import MoldauError, StartupError
from moldau.core.graphs import Graph
from moldau.http.metrics import HttpMetrics
from moldau.ksql.api.access import PeerAccess
from moldau.ksql.api.app import TextStream
from moldau.ksql.api.documents import Document, command_status, current_status
from moldau.ksql.api.errors import ErrorKind, RequestError, StatementError
from moldau.ksql.api.requests import QueryRequest, StatementRequest
from moldau.ksql.api.results import RowStream
from moldau.ksql.cluster import KafkaCluster
from moldau.ksql.peers import Peers
from moldau.ksql.pipelines import explained_plan, pipeline_spec
from moldau.ksql.processing_log import prepare_processing_log, stream_statement
from moldau.ksql.queries.open_queries import Queries
from moldau.ksql.queries.table_copies import SESSION_WINDOW_BYTES, TIME_WINDOW_BYTES, TableCopies
from moldau.ksql.query_metrics import QueryMetrics
from moldau.ksql.query_statistics import offset_summary
from moldau.ksql.schemas import fresh_schemas, request_schemas
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.sharing import QuerySharing
from moldau.ksql.statements.assertions import assert_schema, assert_topic
from moldau.ksql.statements.commands import Command, CommandError, CommandId
from moldau.ksql.statements.descriptions import Descriptions
from moldau.ksql.statements.facts import Facts, Rehearsal
from moldau.ksql.statements.headless import FileLog, statements_of
from moldau.ksql.statements.inserts import insert_rows, serialized_record
from moldau.ksql.statements.runner import StatementRunner, Step
from moldau.ksql.statements.state import HostedQuery, ServerState
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
KEPT_OUTCOMES = 1000
PROGRESS = ("metrics", "lag", "batches", "restarts")
"""What of the engine's status is shown as a query's progress; its definition holds settings, which may be secret."""
TERMINATED = CommandId("cluster", "TerminateCluster", "terminate")

_logger = logging.getLogger("moldau.ksql")


class KsqlServer:
    """Runs on one event loop. `link` leads to the engine process."""

    def __init__(self, settings: KsqlSettings, link: PipelineLink, *, port: int | None = None) -> None:
        """`port` is the one that is bound, where the settings leave it open."""
        self.settings = settings
        self.host_name = settings.host_name_at(port or settings.listener.port)
        """The name of this server in documents, and for the other servers with its service id."""
        functions = user_functions(settings)
        self.state = ServerState(
            settings.statement_settings, functions=functions, query_defaults=settings.query_defaults
        )
        self.cluster = KafkaCluster(settings["bootstrap.servers"], settings.client_properties)
        self.copies = TableCopies(settings.server_folder / "tables.db", self.cluster)
        self._link = link
        self._is_headless = settings["ksql.queries.file"] is not None
        self._log = FileLog(self._apply, self.cluster.open_admin) if self._is_headless else self._new_log()
        self._runner = StatementRunner(self)
        self._descriptions = Descriptions(self.state, settings, functions, self)
        self._queries = Queries(self)
        self._is_ready = False
        access = PeerAccess(settings)
        own_url = f"{settings.listener.scheme}://{self.host_name}"
        self.sharing = QuerySharing(own_url, settings.sharing_group, self.cluster.open_admin, self._share_out)
        self.peers = Peers(
            lambda: self.sharing.others, lambda: self.host_name, self._own_states, self.store_lags, access
        )
        query_metrics = QueryMetrics(self._own_states, self._engine_status, settings.query_prefix)
        self.metrics = HttpMetrics("moldau_ksql", self._gauges, query_metrics.families)
        """What /metrics shows."""
        self._outcomes: dict[int, Document] = {}
        """The statuses of the latest commands, by their offsets."""
        self._has_joined = False
        self._running: dict[str, HostedQuery] = {}
        """The queries that this server runs."""

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
        await self._declare()
        self._follow_tables()
        self.copies.start()
        self.sharing.start()
        self.peers.start()
        _logger.info("loaded %d sources and %d queries", len(self.state.catalogue.sources), len(self.state.queries))

    async def _declare(self) -> None:
        """Run the statements that are the server's own: those of its file, and that of the processing log."""
        if self.state.is_terminated:
            return
        name = self.settings["ksql.logging.processing.stream.name"]
        if await prepare_processing_log(self.settings, self.cluster) and name not in self.state.catalogue.sources:
            try:
                await self._runner.run(StatementRequest(text=stream_statement(self.settings)))
            except StatementError as error:
                _logger.warning("the stream %s of the processing log cannot be declared: %s", name, error)
        if self._is_headless:
            file = self.settings["ksql.queries.file"]
            try:
                await self._runner.run(StatementRequest(text=statements_of(Path(file))))
            except StatementError as error:
                raise StartupError(f"ksql.queries.file: {file}: {error} (in: {error.statement})") from None

    async def stop(self) -> None:
        """Stop the queries' engine, unless it is shared, and the clients."""
        await self._queries.close()
        await self.peers.stop()
        await self._link.stop()
        await self.sharing.stop()  # the others take the queries once they have ended here
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
        self._note_outcome(record.offset, self.state.statuses[str(command.id)])
        if not self._is_ready or outcome is None:
            return
        self._follow_tables()
        for query_id in outcome.stopped:
            hosted = self._running.pop(query_id, None) if query_id not in self.state.queries else None
            if hosted is not None:
                self._link.unwant(pipeline_spec(hosted, self.settings), delete_state=True)
        for query_id, hosted in self.state.queries.items():
            if self.sharing.is_own(query_id) and before.get(query_id) != (hosted, hosted.is_paused):
                self._want(hosted)

    def _note_outcome(self, offset: int, status: Document) -> None:
        """Two servers may have accepted the same id at the same time: its status may be that of the other one."""
        if not self._is_ready:
            return
        self._outcomes[offset] = status
        while len(self._outcomes) > KEPT_OUTCOMES:
            self._outcomes.pop(next(iter(self._outcomes)))

    def _want(self, hosted: HostedQuery) -> None:
        self._running[hosted.query_id] = hosted
        self._link.want(pipeline_spec(hosted, self.settings))

    def _share_out(self) -> None:
        """Run the queries that are this server's own now, and leave the others to their servers."""
        if self.state.is_terminated:
            return
        if not self._has_joined:  # an engine that was found running is not told before that what to stop
            self._has_joined = True
            self._link.start()
        for query_id in [one for one in self._running if not self.sharing.is_own(one)]:
            self._link.unwant(pipeline_spec(self._running.pop(query_id), self.settings), delete_state=False)
        for query_id, hosted in self.state.queries.items():
            if query_id not in self._running and self.sharing.is_own(query_id):
                self._want(hosted)

    def _own_states(self) -> dict[str, str]:
        """The states of this server's queries, for the other servers."""
        return {query_id: self._descriptions.state_of(hosted) for query_id, hosted in self._running.items()}

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
            self.copies.follow(topic, source.partitions, _window_bytes(source), source.window_retention_ms)

    async def append(self, command: Command) -> tuple[int, Document]:
        """Write a command and wait until it is applied; its offset, and what became of it."""
        offset = (await self._log.append([LogWrite(command.key(), command.value())]))[0]
        return offset, self._outcomes.pop(offset, self.state.statuses.get(str(command.id), {}))

    def _terminate(self) -> None:
        for hosted in self._running.values():
            self._link.unwant(pipeline_spec(hosted, self.settings), delete_state=True)
        self._running.clear()
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
        if self._is_headless:
            raise RequestError(
                f"This server runs the statements of {self.settings['ksql.queries.file']} and takes no others",
                ErrorKind.FORBIDDEN,
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
        offset, _ = await self.append(command)
        await self._link.settle(CLOSE_S)
        for topic in sinks:
            if any(pattern.fullmatch(topic) for pattern in patterns):
                await asyncio.to_thread(self.cluster.delete, topic)
        await asyncio.to_thread(self.cluster.delete, self.settings.command_topic)
        status = command_status("QUEUED", "Statement written to command topic")
        return [current_status(command.statement, TERMINATED, status, offset)]

    # Queries and inserts

    async def open_query(self, request: QueryRequest, *, may_forward: bool = False) -> RowStream | TextStream:
        """The rows of a push or pull query, or the lines of PRINT; raises `NotHereError` only if that may be."""
        self._check_open()
        return await self._queries.open(request, may_forward=may_forward)

    def holder_of(self, source: Source) -> str | None:
        """The URL of another server that holds all of a table, as it said itself."""
        for url in self.sharing.others:
            lags = self.peers.lags_of(url).get("stateStoreLags", {}).get(source.topic, {}).get("lagByPartition", {})
            if lags and self.peers.is_alive(url) and all(one["offsetLag"] == 0 for one in lags.values()):
                return url
        return None

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

    def topic_list(self) -> list[TopicDescription]:
        """All topics. Blocks."""
        return self.cluster.topics()

    def pipeline_status(self, query_id: str) -> Mapping[str, Any] | None:
        """What the engine last said of a query; of one on another server, what that server last said."""
        owner = self.sharing.owner(query_id)
        if owner is not None and owner != self.sharing.own_url:
            state = self.peers.state_of(owner, query_id)
            return None if state is None else {"state": state}
        return self._link.status(f"{self.settings.query_prefix}{query_id}")

    async def _engine_status(self, query_id: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self._link.ask("pipeline", f"{self.settings.query_prefix}{query_id}")
        return found

    def query_ids(self) -> Iterable[str]:
        """The persistent queries of all servers with this service id."""
        return list(self.state.queries)

    def query_graph(self, query_id: str) -> Graph:
        """A query's topics, operators and stores."""
        return self.state.queries[query_id].query.topology.to_graph(query_id)

    async def query_progress(self, query_id: str) -> Document:
        """How a query does; its numbers are known to the server that runs it."""
        host, state = self.host_of(query_id), self._descriptions.state_of(self.state.queries[query_id])
        shown = {"pipeline": query_id, "kind": "query", "state": state, "host": host}
        if host != self.host_name:
            return shown
        try:
            found = await self._engine_status(query_id)
        except MoldauError as error:  # the engine has not started it yet, or is being started itself
            return {**shown, "last_error": str(error)}
        failures = [one["message"] for one in found["failures"]]
        progress = {name: found[name] for name in PROGRESS if name in found}
        return {**shown, "last_error": failures[-1] if failures else None, **progress}

    async def query_numbers(self, query_id: str) -> Mapping[str, Any]:
        """What the engine has counted for a query; nothing where it cannot be asked."""
        try:
            found: Mapping[str, Any] = (await self._engine_status(query_id)).get("metrics") or {}
        except MoldauError:
            return {}  # it has just started or ended, or runs on another server
        return found

    def offset_summary(self, hosted: HostedQuery) -> Document:
        """How far the consumer group of a query is. Blocks."""
        group_id = f"{self.settings.query_prefix}{hosted.query_id}"
        return offset_summary(self.cluster, group_id, hosted.query.source_topics)

    def host_of(self, query_id: str) -> str:
        """The server that runs a query."""
        return urlsplit(self.sharing.owner(query_id) or self.sharing.own_url).netloc

    async def explain_pipeline(self, query_id: str) -> str:
        """How a query runs on Spark."""
        if self.host_of(query_id) != self.host_name:
            raise MoldauError(f"the query runs on {self.host_of(query_id)}; send the request there")
        return str(await self._link.ask("explain", f"{self.settings.query_prefix}{query_id}"))

    def explain_plan(self, planned: PersistentQuery, properties: Mapping[str, Any]) -> str:
        """How a query would run on Spark. Blocks."""
        topics = (*planned.source_topics, planned.sink_topic)
        counts = {topic: self.cluster.partitions(topic) or 1 for topic in topics}
        return explained_plan(planned, self.settings, self.state.with_defaults(properties), counts)

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
        """`/clusterStatus`: all servers with this service id. Blocks."""
        urls = self.sharing.urls or (self.sharing.own_url,)
        return {"clusterStatus": {urlsplit(url).netloc: self._host_status(url) for url in urls}}

    def _host_status(self, url: str) -> Document:
        is_own = url == self.sharing.own_url
        now_ms = time.time_ns() // 1_000_000
        queries = [one for one in self.state.queries.values() if self.host_of(one.query_id) == urlsplit(url).netloc]
        no_lags = {"stateStoreLags": {}, "updateTimeMs": 0}
        return {
            "hostAlive": is_own or self.peers.is_alive(url),
            "lastStatusUpdateMs": now_ms if is_own else self.peers.heard_at_ms(url),
            "activeStandbyPerQuery": {one.query_id: self._active_parts(one) for one in queries},
            "hostStoreLags": self.store_lags() if is_own else self.peers.lags_of(url) or no_lags,
        }

    def _active_parts(self, hosted: HostedQuery) -> Document:
        sources = (self.state.catalogue.sources.get(name) for name in hosted.query.sources)
        sink = self.state.catalogue.sources.get(hosted.query.sink)
        return {
            "activeStores": [hosted.query.sink_topic] if sink is not None and sink.is_table else [],
            "activePartitions": [
                {"topic": source.topic, "partition": number}
                for source in sources
                if source is not None
                for number in range(source.partitions)
            ],
            "standByStores": [],
            "standByPartitions": [],
        }

    def store_lags(self) -> Document:
        """How far the copies of tables are behind their topics. Blocks."""
        topics = sorted(self.copies.followed)
        stores = {}
        for topic, ends in (self.cluster.end_offsets(topics) if topics else {}).items():
            lags = {
                number: {
                    "currentOffsetPosition": position,
                    "endOffsetPosition": end,
                    "offsetLag": max(0, end - position),
                }
                for number, end in ends.items()
                for position in [self.copies.position(topic, int(number))]
            }
            stores[topic] = {"lagByPartition": lags, "size": len(lags)}
        return {"stateStoreLags": stores, "updateTimeMs": time.time_ns() // 1_000_000}

    def note_heartbeat(self, document: Mapping[str, Any]) -> None:
        """`/heartbeat`, from another server."""
        self.peers.note_heartbeat(document)

    def note_lags(self, document: Mapping[str, Any]) -> None:
        """`/lag`, from another server."""
        self.peers.note_lags(document)

    def _gauges(self) -> dict[str, float]:
        return {
            "sources": len(self.state.catalogue.sources),
            "persistent_queries": len(self._running),
            "push_queries": len(list(self._queries.running())),
            "servers": len(self.sharing.urls),
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
