"""PRINT: the records of a topic as text, with key and value formats that are guessed while reading.

A format stays possible until a record does not fit it. Start at `print_topic`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

from moldau.ksql.api.errors import RequestError
from moldau.ksql.cluster import KafkaCluster
from moldau.ksql.queries.print_formats import FormatGuess, key_formats, value_formats
from moldau.ksql.queries.topic_reading import TopicRecord, read_topics
from moldau.pipeline.ksql.syntax.statements import PrintTopic
from moldau.serdes.schema_source import SchemaSource

__all__ = ["print_topic"]


async def print_topic(
    cluster: KafkaCluster, statement: PrintTopic, schemas: SchemaSource | None
) -> AsyncGenerator[bytes, None]:
    """The lines of PRINT; raises `RequestError` if there is no such topic."""
    names = await asyncio.to_thread(cluster.admin.topic_names)
    if statement.topic not in names:
        similar = [name for name in names if name.lower() == statement.topic.lower()]
        hint = "".join(f"\n\tprint '{name}'" for name in similar)
        raise RequestError(
            f"Could not find topic '{statement.topic}', or the KSQL user does not have permissions to list the topic. "
            "Topic names are case-sensitive." + (f"\nDid you mean:{hint}" if hint else "")
        )
    reading = read_topics(cluster, [statement.topic], from_end=not statement.from_beginning, until=asyncio.Event())
    await reading.start()
    keys = FormatGuess("Key", key_formats(schemas))
    return _lines(reading.batches(), statement, keys, FormatGuess("Value", value_formats(schemas)))


async def _lines(
    batches: AsyncGenerator[list[TopicRecord], None], statement: PrintTopic, keys: FormatGuess, values: FormatGuess
) -> AsyncGenerator[bytes, None]:
    interval, printed, seen = statement.interval or 1, 0, 0
    try:
        async for batch in batches:
            for record in batch:
                seen += 1
                if (seen - 1) % interval:
                    continue
                # schemas may have to be fetched
                key, value = await asyncio.to_thread(lambda one: (keys.text(one.key), values.text(one.value)), record)
                for guess in (keys, values):
                    line = guess.news()
                    if line is not None:
                        yield f"{line}\n".encode()
                time = datetime.fromtimestamp(record.timestamp / 1000, UTC)
                shown = f"{time:%Y/%m/%d %H:%M:%S}.{record.timestamp % 1000:03d} Z"
                yield f"rowtime: {shown}, key: {key}, value: {value}, partition: {record.partition}\n".encode()
                printed += 1
                if printed == statement.limit:
                    return
    finally:
        await batches.aclose()
