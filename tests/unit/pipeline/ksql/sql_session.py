"""A session of SQL in memory for unit tests: statements, records in, rows out."""

from __future__ import annotations

import json
from typing import Any

from tests.ksql_cases.case_registry import CaseRegistry
from tests.ksql_cases.world import CaseTopics

from moldau.formats.registry.topic_schemas import TopicSchemas
from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ksql.execution.engine import Engine, Outcome, PersistentQuery
from moldau.pipeline.ksql.syntax.parser import parse

Record = tuple[str, Any, Any, int]
"""Topic, key, value, time; keys are texts, values are JSON."""


class SqlSession:
    """An engine whose topics all exist once a statement names them."""

    def __init__(self, *statements: str, **settings: object) -> None:
        self.topics = CaseTopics()
        self.engine = Engine(self.topics, TopicSchemas(CaseRegistry()), dict(settings))
        for statement in statements:
            self.execute(statement)

    def execute(self, text: str) -> Outcome:
        """Carry out statements; the outcome of the last one."""
        outcome = Outcome("")
        for statement in parse(text):
            outcome = self.engine.execute(statement)
        return outcome

    def start(self, text: str) -> PersistentQuery:
        """Carry out a statement that starts a query."""
        started = self.execute(text).started
        assert started is not None
        return started

    def results(self, query: PersistentQuery, *records: Record) -> list[tuple[Any, Any, int]]:
        """What a query writes for records: key, value, time."""
        settings = TaskSettings(cache_max_bytes=0, deserialization_handler=log_and_continue)
        run = InMemoryRun(query.topology, settings)
        for topic, key, value, timestamp in records:
            data = None if value is None else json.dumps(value).encode()
            run.pipe(topic, None if key is None else key.encode(), data, timestamp, partition=0)
        found = [one for one in run.drain() if one.topic == query.sink_topic]
        run.close()
        return [
            (
                None if one.key is None else one.key.decode("latin-1"),
                None if one.value is None else json.loads(one.value),
                one.timestamp,
            )
            for one in found
        ]
