"""A run of statements in memory: queries are fed with records, and what they write is compared. Start at `TrialRun`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.core.errors import MoldauError
from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine, PersistentQuery
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.trial.records import compare_outputs, input_record, inserted
from moldau.pipeline.ksql.trial.registry import MemoryRegistry
from moldau.pipeline.ksql.trial.topics import MemoryRecord, MemoryTopics
from moldau.serdes.serde import Part, Serde, ready_serde

__all__ = ["TrialRun"]

Json = Mapping[str, Any]


class TrialRun:
    """Statements, then records, then the comparison; a topic that a statement names exists before it."""

    def __init__(self, functions: FunctionRegistry = BUILTIN) -> None:
        self._topics = MemoryTopics()
        self._schemas = MemoryRegistry()
        self._engine = Engine(self._topics, TopicSchemas(self._schemas), functions=functions)
        self._queries: dict[str, PersistentQuery] = {}

    def execute(self, text: str) -> None:
        """Carry out statements; raises `KsqlError`, also for one that shows something or asks for rows."""
        for statement in parse(text, allow_missing_semicolon=True):
            self._make_topic(statement)
            outcome = self._engine.execute(statement)
            for query_id in outcome.stopped:
                if outcome.started is None:
                    self._queries.pop(query_id, None)
            if outcome.started is not None:
                self._queries[outcome.started.query_id] = outcome.started
            if outcome.record is not None:
                self._topics.append(outcome.record.source.topic, inserted(outcome.record, self._schemas))

    def feed(self, records: Sequence[Json]) -> None:
        """Feed every query with the records of its topics, in their order; what queries write feeds later ones."""
        given = [(str(one["topic"]), self._encoded(number, one)) for number, one in enumerate(records)]
        fed = {topic for topic, _ in given}
        for topic, record in given:
            self._topics.append(topic, record)
        for query in self._queries.values():
            self._feed_query(query, given, fed)

    def _encoded(self, number: int, record: Json) -> MemoryRecord:
        try:
            return input_record(dict(record), self._engine, self._schemas)
        except (MoldauError, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
            # A record comes from a file of the user: whatever does not fit its topic's formats is a mistake in it.
            raise KsqlError(f"Input record {number} does not fit the topic {record['topic']}: {error}") from None

    def check(self, outputs: Sequence[Json], *, has_inputs: bool) -> None:
        """Raise `MismatchError` where topics do not hold the expected records."""
        expected = [dict(one) for one in outputs]
        compare_outputs(expected, self._topics, self._engine, self._schemas, is_exact=True, has_inputs=has_inputs)

    def _make_topic(self, statement: syntax.Statement) -> None:
        if not isinstance(statement, syntax.CreateSource):
            return
        given = {one.name.upper(): getattr(one.value, "value", None) for one in statement.properties}
        topic = given.get("KAFKA_TOPIC")
        if isinstance(topic, str) and self._topics.partitions(topic) is None:
            partitions = given.get("PARTITIONS")
            self._topics.create(topic, partitions if isinstance(partitions, int) else 1, 1, {})

    def _feed_query(self, query: PersistentQuery, given: Sequence[tuple[str, MemoryRecord]], fed: set[str]) -> None:
        written = [
            (topic, record) for topic in query.source_topics if topic not in fed for record in self._topics.log(topic)
        ]
        settings = TaskSettings(cache_max_bytes=0, deserialization_handler=log_and_continue)
        run = InMemoryRun(query.topology.with_prepared_serdes(self._connected), settings)
        try:
            for topic, record in [*(one for one in given if one[0] in query.source_topics), *written]:
                run.pipe(topic, record.key, record.value, record.timestamp, headers=record.headers, partition=0)
                for made in run.drain():
                    if made.topic == query.sink_topic:
                        kept = MemoryRecord(made.key, made.value, made.timestamp, made.headers)
                        self._topics.append(made.topic, kept)
        except MoldauError as error:
            raise KsqlError(f"{query.query_id} failed: {error}") from error
        finally:
            run.close()

    def _connected(self, serde: Serde, part: Part) -> Serde:
        return ready_serde(serde, {"schema.registry.url": "memory"}, part, lambda url, user_info: self._schemas)
