"""The processing log: what single records failed on, as a topic that queries write and a stream that can be asked.

Start at `prepare_processing_log`.
"""

from __future__ import annotations

import asyncio
import logging

from moldau.client.errors import ClientError
from moldau.ksql.cluster import KafkaCluster
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.ksql.errors import KsqlError

__all__ = ["prepare_processing_log", "stream_statement"]

PARTITIONS = 1

_logger = logging.getLogger("moldau.ksql")


def stream_statement(settings: KsqlSettings) -> str:
    """The statement that declares the stream; its columns are those of ksqlDB's."""
    name, topic = settings["ksql.logging.processing.stream.name"], settings.processing_log_topic
    causes = "cause ARRAY<STRING>"
    return (
        f"CREATE STREAM {name} (logger STRING, level STRING, time BIGINT, message STRUCT<type INT, "
        f"deserializationError STRUCT<target STRING, errorMessage STRING, recordB64 STRING, {causes}, `topic` STRING>, "
        f"recordProcessingError STRUCT<errorMessage STRING, record STRING, {causes}>, "
        "productionError STRUCT<errorMessage STRING>, "
        f"serializationError STRUCT<target STRING, errorMessage STRING, record STRING, {causes}, `topic` STRING>, "
        f"kafkaStreamsThreadError STRUCT<errorMessage STRING, threadName STRING, {causes}>>) "
        f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');"
    )


async def prepare_processing_log(settings: KsqlSettings, cluster: KafkaCluster) -> bool:
    """Create the topic if that is wanted; whether the stream shall be declared then."""
    topic = settings.processing_log_topic
    if not settings["ksql.logging.processing.topic.auto.create"]:
        return False
    try:
        if await asyncio.to_thread(cluster.partitions, topic) is None:
            replicas = settings["ksql.internal.topic.replicas"]
            await asyncio.to_thread(cluster.create, topic, PARTITIONS, replicas, {})
    except (ClientError, KsqlError) as error:
        _logger.warning("there is no processing log, since its topic %s cannot be created: %s", topic, error)
        return False
    return bool(settings["ksql.logging.processing.stream.auto.create"])
