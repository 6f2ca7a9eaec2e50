"""The topic with a pipeline's progress: one record per batch, of which only the last one counts.

Start at `read_progress`; `sinks` writes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.client.errors import client_error
from moldau.client.waiting import close_within
from moldau.pipeline.runtime.errors import MissingTopicError
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.runtime.kafka.clients import CLOSE_S, KafkaClients
from moldau.pipeline.runtime.progress import Progress

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["TOPIC_CONFIGS", "read_progress"]

TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    # There is one record per batch, but only the last one counts.
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}

TAIL = 200
"""How many records to read from the end: each transaction adds one progress record and one marker."""

CALL_S = 15.0
PAUSE_S = 0.1


def read_progress(identity: PipelineIdentity, clients: KafkaClients, patience_s: float = CALL_S) -> Progress | None:
    """The progress in the last committed transaction; None if there is none.

    Raises `MissingTopicError` if the topic, which was created before, is not visible: starting from the beginning would
    write results twice. Raises `ClientError` if the cluster does not answer.
    """
    from confluent_kafka import KafkaException, TopicPartition

    reading = {"enable.partition.eof": "true", "auto.offset.reset": "earliest"}
    consumer = clients.new_consumer(identity.group_id, reading)
    place = TopicPartition(identity.progress_topic, 0)
    try:
        _wait_until_seen(consumer, place.topic, patience_s)
        low, high = consumer.get_watermark_offsets(place, CALL_S)
        for start in dict.fromkeys((max(low, high - TAIL), low)):
            if high > start and (found := _last(consumer, place, start)) is not None:
                return found
    except KafkaException as error:
        raise client_error(error.args[0], about=f"Topic {place.topic}") from None
    finally:
        close_within(consumer, CLOSE_S)
    return None


def _wait_until_seen(consumer: Consumer, topic: str, patience_s: float) -> None:
    """Wait until the topic is in the metadata: brokers learn of a new topic one after the other."""
    deadline = time.monotonic() + patience_s
    while topic not in consumer.list_topics(timeout=CALL_S).topics:
        if time.monotonic() > deadline:
            raise MissingTopicError(
                f"topic {topic}, which stores the pipeline's progress, is not visible; allow its user to "
                "describe and read it"
            )
        time.sleep(PAUSE_S)


def _last(consumer: Consumer, place: object, start: int) -> Progress | None:
    """The last record from an offset on; None if its value is empty, as a reset writes it."""
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    assert isinstance(place, TopicPartition)
    consumer.assign([TopicPartition(place.topic, place.partition, start)])
    found: bytes | None = None
    while True:
        message = consumer.poll(CALL_S)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        error = message.error()
        if error is None:
            found = message.value()
        elif error.code() == KafkaError._PARTITION_EOF:
            return None if not found else Progress.decode(found)
        else:
            raise KafkaException(error)
