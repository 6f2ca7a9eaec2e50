"""Runs one conformance case over HTTP: statements to `/ksql`, records to a real broker, queries to `/query`.

Persistent queries run in memory (`memory_pipelines`), so that hundreds of cases take minutes. What is compared is
written in the README beside the cases, section 8. Start at `RestWorld.run_case`.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as RdkafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.ksql_cases.case_records import MismatchError, compare_outputs, input_record
from tests.ksql_cases.case_registry import register_schemas
from tests.ksql_cases.case_values import is_equal
from tests.ksql_cases.cases import FOLDER, Case, Json, load_cases
from tests.ksql_cases.memory_pipelines import MemoryBuilder, Send
from tests.ksql_cases.world import CaseRecord, CaseTopics

from moldau.client.admin import Admin
from moldau.client.schema_registry import RegisteredSchemas, RegistryClient
from moldau.client.wire_producer import WireProducer
from moldau.core.ids import TopicPartition
from moldau.http.http2_serving import Http2Server
from moldau.ksql.api.app import build_app
from moldau.ksql.pipelines import KIND
from moldau.ksql.server import KsqlServer
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.runtime.hosting.local_link import LocalLink
from moldau.registry.mock import mock_registry

REST_FOLDER = FOLDER.with_name("rest-cases")
PATIENCE_S = 20.0
QUERY_S = 4.0
CASES_PER_SERVER = 100
"""Starting a server takes longer than most cases; its command topic should not grow for ever."""
SHOWN_PARTITIONS = 4
"""The partitions of topics where the case shows them: keys then have the partitions that it expects."""
TOPIC = re.compile(r"kafka_topic\s*=\s*'([^']+)'", re.IGNORECASE)
PARTITIONS = re.compile(r"partitions\s*=\s*(\d+)", re.IGNORECASE)
QUERY = re.compile(r"\s*SELECT\b", re.IGNORECASE)


def load_rest_cases() -> list[Case]:
    """All cases over HTTP."""
    return load_cases(REST_FOLDER)


class RestServer:
    """A ksql server in a thread of this process."""

    def __init__(
        self, servers: str, folder: Path, send: Send, *, service_id: str | None = None, **settings: str
    ) -> None:
        """`settings` are further ones, by names with `_` for `.`."""
        self.http = Http2Server(host="127.0.0.1", drain_s=1)
        self.http.bind()
        self.service_id = service_id or f"case_{secrets.token_hex(4)}_"
        self.registry_url = f"mock://{self.service_id}"
        self.settings = KsqlSettings.of(
            {
                "bootstrap.servers": servers,
                "listeners": f"http://127.0.0.1:{self.http.port}",
                "ksql.service.id": self.service_id,
                "ksql.schema.registry.url": self.registry_url,
                "ksql.streams.state.dir": str(folder),
                # As ksqlDB has it by default, so that cases begin without sources.
                "ksql.logging.processing.stream.auto.create": "false",
                "ksql.logging.processing.topic.auto.create": "false",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.builder = MemoryBuilder(send)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._start())

    async def _start(self) -> None:
        self.server = KsqlServer(self.settings, LocalLink(PipelineHost({KIND: self.builder})))
        await self.server.start()
        await self.http.start(build_app(self.server, self.server.metrics))

    async def _stop(self) -> None:
        await self.http.stop()
        await self.server.stop()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def cleared(self) -> bool:
        """Drop all that a case has made; False if that did not work, and the server is of no more use."""
        # clients keep what they know of schemas
        return not mock_registry(self.registry_url).ask("GET", "/subjects") and self.drop_all()

    def drop_all(self) -> bool:
        """End all queries and drop all sources and types; False if that did not work."""
        state = self.server.state
        names = [f"DROP {one.kind.value} `{one.name}`;" for one in reversed(state.catalogue.sources.values())]
        names += [f"DROP TYPE `{name}`;" for name in state.catalogue.types]
        text = "\n".join(["TERMINATE ALL;" if state.queries else "", *names])
        answer = httpx.post(f"{self.url}/ksql", json={"ksql": text}, timeout=PATIENCE_S)
        for pipeline in self.builder.pipelines:
            pipeline.stop(PATIENCE_S)
        self.builder.pipelines.clear()
        return answer.status_code == 200

    def close(self) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.port}"


class RestWorld:
    """A broker for all cases, and a server for a few of them: starting one takes longer than most cases."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._servers, self._folder = servers, folder
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": "2"})
        # librdkafka takes a timestamp of 0 for "now", and cases begin at 0.
        self._producer = WireProducer(Admin(servers))
        self._server: RestServer | None = None
        self._used = 0

    def close(self) -> None:
        self._close_server()
        self._producer.close()

    def send(self, topic: str, partition: int, record: CaseRecord) -> None:
        place = TopicPartition(topic, partition)
        self._producer.write(place, record.key, record.value, record.timestamp, record.headers)

    def run_case(self, case: Case) -> str | None:
        """Why a case failed; None if it passed."""
        server = self._server_for(case)
        self._used += 1
        try:
            _Run(case, server, self._admin, self._servers, self.send).run()
        except MismatchError as mismatch:
            return str(mismatch)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            is_clean = not case.content.get("topics") and self._used < CASES_PER_SERVER and server.cleared()
            if not is_clean:
                self._close_server()
            self._delete_topics(server)
        return None

    def _server_for(self, case: Case) -> RestServer:
        """A server without sources; cases that choose the ids of schemas have one of their own."""
        if case.content.get("topics"):
            self._close_server()
        if self._server is None:
            self._server, self._used = RestServer(self._servers, self._folder, self.send), 0
        return self._server

    def _close_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _delete_topics(self, server: RestServer) -> None:
        kept = () if self._server is None else (server.settings.command_topic,)
        found = self._admin.list_topics(timeout=10).topics
        names = [name for name in found if not name.startswith("__") and name not in kept]
        for future in self._admin.delete_topics(names).values() if names else ():
            future.exception(10)


class _Run:
    def __init__(self, case: Case, server: RestServer, admin: AdminClient, servers: str, send: Send) -> None:
        self.case, self.server, self.admin = case, server, admin
        self.servers, self.send = servers, send
        self.hash = partition_hash()
        self.properties = {name: _plain(value) for name, value in case.properties.items()}
        self.properties.setdefault("auto.offset.reset", "earliest")
        self.http = httpx.Client(base_url=server.url, timeout=PATIENCE_S)
        self.schemas = RegisteredSchemas(RegistryClient({"schema.registry.url": server.registry_url}))

    def run(self) -> None:
        with self.http:
            self._create_topics()
            statements = [text for text in self.case.statements if not QUERY.match(text)]
            queries = [text for text in self.case.statements if QUERY.match(text)]
            answers = self._admin_statements(statements, has_queries=bool(queries))
            if answers is None:
                return
            conditions = self.case.content.get("inputConditions", {})
            if conditions.get("waitForActivePushQuery"):
                results = [self._query_with_inputs(queries[0])]
            else:
                self._produce()
                self._await_queries()
                results = [self._query(text) for text in queries]
                if None in results:
                    return
            self._compare(answers, results)
            self._compare_outputs()

    # --- doing

    def _create_topics(self) -> None:
        """The topics that the case names, unless a statement is to create them, with the schemas that it gives."""
        default = SHOWN_PARTITIONS if any("ROWPARTITION" in text.upper() for text in self.case.statements) else 1
        given = {record["topic"]: default for record in self.case.content.get("inputs", ())}
        given |= {topic["name"]: int(topic.get("partitions", default)) for topic in self.case.content.get("topics", ())}
        for text in self.case.statements:
            found = TOPIC.search(text)
            if found is not None:
                partitions = PARTITIONS.search(text)
                given[found[1]] = default if partitions is None else int(partitions[1])
        topics = [NewTopic(name, count, 1) for name, count in sorted(given.items())]
        made = self.admin.create_topics(topics) if topics else {}
        for future in made.values():
            future.result(10)
        for topic in self.case.content.get("topics", ()):
            register_schemas(self.server.registry_url, topic)

    def _admin_statements(self, statements: list[str], *, has_queries: bool) -> list[Json] | None:
        if not statements:
            return []
        body = {"ksql": "\n".join(statements), "streamsProperties": self.properties}
        answer = self.http.post("/ksql", json=body)
        expected = self.case.content.get("expectedError")
        if answer.status_code != 200:
            self._check_error(answer.status_code, answer.json())
            return None
        if expected is not None and not has_queries:
            raise MismatchError(f"accepted; expected {expected}")
        return _exact(answer.text)

    def _check_error(self, status: int, document: Json) -> None:
        expected = self.case.content.get("expectedError")
        if expected is None:
            raise MismatchError(f"{status}: {document}")
        if expected.get("status") not in (None, status):
            raise MismatchError(f"status {status} instead of {expected['status']}: {document}")
        if expected.get("message", "") not in document["message"]:
            raise MismatchError(f"text: {document['message']}\n    expected: {expected['message']}")
        if expected.get("type", "").endswith("KsqlStatementErrorMessage") and "statementText" not in document:
            raise MismatchError(f"no statementText: {document}")

    def _produce(self) -> None:
        engine = self.server.server.current_engine()
        counts = self.server.server.cluster.admin.partition_counts()
        for record in self.case.content.get("inputs", ()):
            made = input_record(record, engine, self.schemas)
            partition = 0 if made.key is None else self.hash(made.key, counts[record["topic"]])
            self.send(record["topic"], partition, made)
            if self._order_matters():
                self._await_readers()

    def _order_matters(self) -> bool:
        """Whether a query reads several topics: what it writes then depends on the order in which it reads them."""
        return any(len(one.query.source_topics) > 1 for one in self.server.server.state.queries.values())

    def _await_readers(self) -> None:
        """Wait until every query has read all that its topics hold, in the order of their creation."""
        server = self.server.server
        for hosted in server.state.queries.values():
            for topic, ends in server.end_offsets(hosted.query.source_topics).items():
                for number, end in ends.items():
                    self._await(hosted.query_id, topic, int(number), end)

    def _await_queries(self) -> None:
        """Wait until queries, and then the copies of their tables, have all that was written."""
        self._await_readers()
        server = self.server.server
        tables = [one.topic for one in server.state.catalogue.sources.values() if one.topic in server.copies.followed]
        for topic, ends in server.end_offsets(tables).items():
            assert server.copies.wait_until(topic, ends, PATIENCE_S)

    def _await(self, query_id: str, topic: str, number: int, end: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while end and not any(
            one.query_id == query_id and one.positions.get((topic, number), 0) >= end
            for one in self.server.builder.pipelines
        ):
            if time.monotonic() > deadline:
                raise MismatchError(f"{query_id} did not read {topic} to {end}")
            time.sleep(0.005)

    def _query(self, text: str) -> list[Json] | None:
        with self.http.stream("POST", "/query", json={"ksql": text, "streamsProperties": self.properties}) as answer:
            if answer.status_code != 200:
                answer.read()
                self._check_error(answer.status_code, answer.json())
                return None
            if self.case.content.get("expectedError") is not None:
                raise MismatchError(f"accepted; expected {self.case.content['expectedError']}")
            return _elements(answer.iter_text(), "")

    def _query_with_inputs(self, text: str) -> list[Json]:
        body = {"ksql": text, "streamsProperties": {**self.properties, "auto.offset.reset": "latest"}}
        with self.http.stream("POST", "/query", json=body) as answer:
            pieces = answer.iter_text()
            received = next(pieces)
            self._produce()
            return _elements(pieces, received)

    # --- comparing

    def _compare(self, answers: list[Json], results: list[list[Json]]) -> None:
        expected = self.case.content.get("responses", [])
        admin = [one["admin"] for one in expected if "admin" in one]
        queries = [one["query"] for one in expected if "query" in one]
        for wanted, found in zip(admin, answers, strict=False):
            _check_contains(wanted, found, self.case.statements)
        if len(queries) > len(results):
            raise MismatchError(f"{len(results)} query results instead of {len(queries)}")
        for wanted, found in zip(queries, results, strict=False):
            _check_rows(wanted, found)

    def _compare_outputs(self) -> None:
        expected = self.case.content.get("outputs", ())
        if not expected:
            return
        topics = CaseTopics()
        for topic in dict.fromkeys(record["topic"] for record in expected):
            for message in self._read(topic, sum(record["topic"] == topic for record in expected)):
                headers = tuple(message.headers() or ())
                topics.append(topic, CaseRecord(message.key(), message.value(), message.timestamp()[1], headers))
        compare_outputs(self.case, topics, self.server.server.current_engine(), self.schemas)

    def _read(self, topic: str, count: int) -> list[Any]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "x", "log_level": "2"})
        try:
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
            consumer.assign([RdkafkaPartition(topic, number, 0) for number in partitions])
            found: list[Any] = []
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count and time.monotonic() < deadline:
                message = consumer.poll(0.1)
                found += [message] if message is not None and message.error() is None else []
            if len(found) != count:
                raise MismatchError(f"{len(found)} records in {topic} instead of {count}")
            return found
        finally:
            consumer.close()


def _elements(pieces: Iterator[str], text: str) -> list[Json]:
    """The elements of a query's answer; a push query that does not end has not given what it should."""
    deadline = time.monotonic() + QUERY_S
    for piece in pieces:
        text += piece
        if time.monotonic() > deadline:
            raise MismatchError(f"the query does not end: {text}")
    found: list[Json] = _exact(text)
    return found


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | str) else str(value)


def _exact(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _check_contains(wanted: Any, found: Any, statements: tuple[str, ...], path: str = "") -> None:
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            if name.endswith("|starts_with"):
                member = name.removesuffix("|starts_with")
                if not str(found.get(member, "")).startswith(value):
                    raise MismatchError(f"{path}/{member}: {found.get(member)!r} does not start with {value!r}")
            elif not isinstance(found, dict) or name not in found:
                raise MismatchError(f"{path}: no {name} in {found}")
            else:
                _check_contains(value, found[name], statements, f"{path}/{name}")
    elif isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            raise MismatchError(f"{path}: {found} instead of {wanted}")
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            _check_contains(one, other, statements, f"{path}/{index}")
    else:
        for index, text in enumerate(statements):
            if isinstance(wanted, str):
                wanted = wanted.replace(f"{{STATEMENT_{index}}}", text)
        if not is_equal(found, wanted):
            raise MismatchError(f"{path}: {found!r} instead of {wanted!r}")


def _check_rows(wanted: list[Json], found: list[Json]) -> None:
    rows = list(_normalized(wanted))
    others = list(_normalized(found))
    if len(rows) != len(others):
        raise MismatchError(f"{len(others)} elements instead of {len(rows)}: {found}")
    for row in rows:
        match = next((other for other in others if _fits(row, other)), None)
        if match is None:
            raise MismatchError(f"missing {row}; found {others}")
        others.remove(match)


def _normalized(elements: list[Json]) -> Iterator[Json]:
    for element in elements:
        if "header" in element:
            yield {"header": {name: value for name, value in element["header"].items() if name != "protoSchema"}}
        else:
            yield element


def _fits(wanted: Json, found: Json) -> bool:
    try:
        _check_contains(wanted, found, ())
    except MismatchError:
        return False
    return ("row" not in wanted) or wanted["row"].get("tombstone") == found.get("row", {}).get("tombstone")
