"""ASSERT: whether topics and schemas are there, waited for until a timeout. Start at `assert_topic`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from moldau.core.errors import ServiceError
from moldau.ksql.api.documents import Document, entity
from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.ksql.cluster import KafkaCluster
from moldau.pipeline.ksql.syntax.statements import AssertSchema, AssertTopic, Property
from moldau.serdes.schema_source import SchemaSource, UnfitValueError

__all__ = ["assert_schema", "assert_topic"]

DEFAULT_TIMEOUT_S = 1.0
RETRY_S = 0.1
Problem = Callable[[], str | None]
"""What is not as it should be, None if all is well. Blocks."""


async def assert_topic(statement: AssertTopic, cluster: KafkaCluster) -> Document:
    """The answer to ASSERT TOPIC; raises `RequestError` if it does not hold in time."""
    await _wait(lambda: _topic_problem(statement, cluster), statement)
    return entity("assert_topic", statement.text, topicName=statement.topic, exists=statement.expects_existence)


async def assert_schema(statement: AssertSchema, schemas: SchemaSource) -> Document:
    """The answer to ASSERT SCHEMA; raises `RequestError` if it does not hold in time."""
    await _wait(lambda: _schema_problem(statement, schemas), statement)
    return entity(
        "assert_schema",
        statement.text,
        subject=statement.subject,
        id=statement.schema_id,
        exists=statement.expects_existence,
    )


async def _wait(problem: Problem, statement: AssertTopic | AssertSchema) -> None:
    timeout_s = DEFAULT_TIMEOUT_S if statement.timeout is None else statement.timeout.ms / 1000
    deadline = time.monotonic() + timeout_s
    while (found := await asyncio.to_thread(problem)) is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise RequestError(found, ErrorKind.ASSERTION_FAILED)
        await asyncio.sleep(min(RETRY_S, left))


def _topic_problem(statement: AssertTopic, cluster: KafkaCluster) -> str | None:
    topic = statement.topic
    found = next((one for one in cluster.topics() if one.name == topic), None)
    if not statement.expects_existence:
        return None if found is None else f"Topic {topic} exists"
    if found is None:
        return f"Topic {topic} does not exist"
    actual = {"PARTITIONS": len(found.partitions), "REPLICAS": found.replication_factor}
    for name, wanted in _wanted(statement.properties).items():
        if actual.get(name) != wanted:
            return (
                f"Mismatched configuration for topic {topic}: For config {name.lower()}, "
                f"expected {wanted} got {actual.get(name)}"
            )
    return None


def _wanted(properties: tuple[Property, ...]) -> dict[str, int]:
    wanted = {}
    for one in properties:
        name = one.name.upper()
        if name not in ("PARTITIONS", "REPLICAS"):
            raise RequestError(f"Cannot assert unknown topic property: {one.name}; PARTITIONS and REPLICAS can be")
        try:
            wanted[name] = int(getattr(one.value, "value", one.value))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise RequestError(f"{one.name} must be a whole number") from None
    return wanted


def _schema_problem(statement: AssertSchema, schemas: SchemaSource) -> str | None:
    parts = []
    if statement.subject is not None:
        parts.append(f"subject name {statement.subject}")
    if statement.schema_id is not None:
        parts.append(f"id {statement.schema_id}")
    name = f"Schema with {' and '.join(parts)}"
    try:
        is_there = _is_schema_there(statement, schemas)
    except ServiceError as error:
        return f"Cannot check whether {name} exists: {error}"
    if statement.expects_existence:
        return None if is_there else f"{name} does not exist"
    return f"{name} exists" if is_there else None


def _is_schema_there(statement: AssertSchema, schemas: SchemaSource) -> bool:
    try:
        by_id = None if statement.schema_id is None else schemas.schema(statement.schema_id)
    except UnfitValueError:
        return False
    if statement.subject is None:
        return by_id is not None
    latest = schemas.latest(statement.subject)
    if latest is None:
        return False
    return by_id is None or latest.id == by_id.id
