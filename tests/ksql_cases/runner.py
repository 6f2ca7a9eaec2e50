"""Runs one conformance case in memory: statements, records in, records out, comparison.

Start at `run_case`. What is compared, and how, is written in the README beside the cases, sections 3 to 5.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.ksql_cases.case_records import MismatchError, compare_outputs, input_record, inserted
from tests.ksql_cases.case_registry import CaseRegistry
from tests.ksql_cases.cases import Case
from tests.ksql_cases.post_conditions import check_post
from tests.ksql_cases.world import CaseRecord, CaseTopics

from moldau.core.errors import MoldauError
from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.timestamps import extractor_named
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine, PersistentQuery
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.serdes.serde import Part, Serde, ready_serde

DEFAULT_PARTITIONS = 4
"""What cases expect of topics that nothing declares; records are fed to partition 0 all the same."""

SYNTAX, REFUSED, RUN_TIME = "syntax", "refused", "run time"
KINDS = {"ParseFailedException": SYNTAX, "StreamsException": RUN_TIME}


@dataclass(frozen=True)
class Result:
    """Whether a case passed, and if not why; an error case may be right in kind and wrong in text."""

    case: Case
    passed: bool
    reason: str = ""
    has_right_kind: bool = False


class QueryDiedError(Exception):
    """A failure while records were fed."""


def run_case(case: Case, partitions: int = 1) -> Result:
    """Run a case and say how it went; with several partitions, keys decide where its records are."""
    try:
        CaseRun(case, partitions).run()
    except (KsqlParseError, KsqlError, QueryDiedError) as error:
        return _judged(case, error)
    except MismatchError as mismatch:
        return Result(case, False, str(mismatch))
    except Exception as error:
        return Result(case, False, f"{type(error).__name__}: {error}")
    if case.expected_error is not None:
        return Result(case, False, f"accepted; expected {case.expected_error.get('message')!r}")
    return Result(case, True)


def _judged(case: Case, error: Exception) -> Result:
    expected = case.expected_error
    if expected is None:
        return Result(case, False, f"{type(error).__name__}: {error}")
    kind = SYNTAX if isinstance(error, KsqlParseError) else RUN_TIME if isinstance(error, QueryDiedError) else REFUSED
    wanted = KINDS.get(str(expected.get("type", "")).rpartition(".")[2], REFUSED)
    if kind != wanted:
        return Result(case, False, f"{kind} instead of {wanted}: {error}")
    message = expected.get("message")
    texts = (str(error), getattr(error, "detailed_message", ""))
    if kind != RUN_TIME and message is not None and not any(message in text for text in texts):
        return Result(case, False, f"text: {error}\n    expected: {message}", has_right_kind=True)
    return Result(case, True, has_right_kind=True)


class AnyCount(dict[str, int]):
    """Partition counts of topics that all exist."""

    def get(self, topic: str, default: Any = None) -> Any:
        return 1


def _declares(statement: syntax.Statement, known: set[str]) -> bool:
    """Whether a statement declares columns of a topic that is not among the known ones."""
    if isinstance(statement, syntax.CreateType):
        return True
    if not isinstance(statement, syntax.CreateSource) or not statement.columns:
        return False
    topics = [getattr(one.value, "value", "") for one in statement.properties if one.name.upper() == "KAFKA_TOPIC"]
    return not known & set(topics)


class CaseRun:
    """A case on its way: its statements carried out, its records fed, its results compared."""

    def __init__(self, case: Case, partitions: int = 1) -> None:
        self.case = case
        self._partitions = partitions
        self.topics = CaseTopics()
        self.schemas = CaseRegistry()
        self.engine = Engine(self.topics, TopicSchemas(self.schemas), dict(case.properties))
        self.queries: dict[str, PersistentQuery] = {}

    def run(self) -> None:
        """Run the case in memory; raises for whatever is not as expected."""
        inputs = self.prepare()
        if inputs is None:
            return
        named = {topic for topic, _ in inputs}
        for query in self.queries.values():
            self._feed(query, inputs, named)
        if self.case.expected_error is None:
            self.compare()

    def prepare(self) -> list[tuple[str, CaseRecord]] | None:
        """Carry out the statements; the records to feed by topic, None where a statement should have failed."""
        content = self.case.content
        self._create_topics()
        lines = 0
        for text in self.case.statements:
            # Messages count lines over all statements of a case.
            self._execute("\n" * lines + text)
            lines += text.count("\n") + 1
        if self.case.expected_error is not None and not content.get("inputs"):
            return None
        records = content.get("inputs", ())
        inputs = [(record["topic"], input_record(record, self.engine, self.schemas)) for record in records]
        for topic, record in inputs:
            self.topics.append(topic, record)
        return inputs

    def compare(self) -> None:
        """Compare what is in the topics, and the catalogue, with what the case expects."""
        compare_outputs(self.case, self.topics, self.engine, self.schemas)
        check_post(self.case.content.get("post", {}), self.engine)

    # --- statements

    def _create_topics(self) -> None:
        content = self.case.content
        for topic in content.get("topics", ()):
            self.topics.create(topic["name"], int(topic.get("partitions", DEFAULT_PARTITIONS)), 1, {})
        self._register_declared({topic["name"] for topic in content.get("topics", ())})
        for topic in content.get("topics", ()):
            self.schemas.prepare(topic)
        self._given = {topic["name"] for topic in content.get("topics", ()) if "partitions" in topic}
        for record in [*content.get("inputs", ()), *content.get("outputs", ())]:
            if self.topics.partitions(record["topic"]) is None:
                self.topics.create(record["topic"], DEFAULT_PARTITIONS, 1, {})

    def _register_declared(self, known: set[str]) -> None:
        """Register the schemas of declared columns before those of `topics`: cases count ids in this order."""
        trial = Engine(CaseTopics(AnyCount()), TopicSchemas(self.schemas), dict(self.case.properties))
        for text in self.case.statements:
            with suppress(MoldauError):
                for statement in parse(text):
                    if _declares(statement, known):
                        trial.execute(statement)

    def _execute(self, text: str) -> None:
        for statement in parse(text):
            self._make_topic(statement)
            outcome = self.engine.execute(statement)
            for query_id in outcome.stopped:
                if outcome.started is None:
                    self.queries.pop(query_id, None)
            if outcome.started is not None:
                self.queries[outcome.started.query_id] = outcome.started
            if outcome.record is not None:
                self.topics.append(outcome.record.source.topic, inserted(outcome.record, self.schemas))

    def _make_topic(self, statement: syntax.Statement) -> None:
        """Every topic that a CREATE statement names exists beforehand."""
        if not isinstance(statement, syntax.CreateSource | syntax.CreateAsSelect):
            return
        given = {one.name.upper(): getattr(one.value, "value", None) for one in statement.properties}
        topic = given.get("KAFKA_TOPIC")
        if isinstance(topic, str) and topic not in self._given:
            self._given.add(topic)
            self.topics.create(topic, int(given.get("PARTITIONS") or DEFAULT_PARTITIONS), 1, {})

    # --- records

    def _feed(self, query: PersistentQuery, inputs: list[tuple[str, CaseRecord]], named: set[str]) -> None:
        run = InMemoryRun(
            query.topology.with_prepared_serdes(self._connected), self.settings, partitions=self._partitions
        )
        try:
            for topic, record in inputs:
                if topic in query.source_topics:
                    self._pipe(run, query, topic, record)
            for topic in query.source_topics:
                if topic not in named:
                    for record in list(self.topics.log(topic)):
                        self._pipe(run, query, topic, record)
        except MoldauError as error:
            raise QueryDiedError(str(error)) from error
        finally:
            run.close()

    def _pipe(self, run: InMemoryRun, query: PersistentQuery, topic: str, record: CaseRecord) -> None:
        partition = 0 if self._partitions == 1 else None
        run.pipe(topic, record.key, record.value, record.timestamp, headers=record.headers, partition=partition)
        for made in run.drain():
            if made.topic == query.sink_topic:
                self.topics.append(made.topic, CaseRecord(made.key, made.value, made.timestamp, made.headers))

    def _connected(self, serde: Serde, part: Part) -> Serde:
        return ready_serde(serde, {"schema.registry.url": "memory"}, part, lambda url, user_info: self.schemas)

    @property
    def settings(self) -> TaskSettings:
        given: Any = self.case.properties.get("ksql.streams.default.timestamp.extractor")
        extractor = None if given is None else extractor_named(re.sub(r".*\.", "", str(given)))
        return TaskSettings(cache_max_bytes=0, deserialization_handler=log_and_continue, timestamps=extractor)
