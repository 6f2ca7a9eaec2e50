"""The outputs of a task: sinks to topics, and repartitionings to other sub-topologies.

Both append rows to the task's outputs, which the host of the task drains.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from moldau.core.errors import ServiceError
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import ProcessingError, SerializationError
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.processor import Processor
from moldau.pipeline.cores.records import Record
from moldau.pipeline.cores.serialization import Encode, change_encoder, encoder
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import PythonFunction
from moldau.serdes.serde import Headers, SerdeError, bound_serializer, wants_headers
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["RepartitionOutput", "SinkProcessor"]

WINDOWED_SERDES = (TimeWindowedSerde, SessionWindowedSerde)


class _Output(Processor):
    """Serializes keys and values with the serdes of its node."""

    node: ir.Sink | ir.Repartition

    def __init__(self, node: ir.Sink | ir.Repartition, context: TaskContext) -> None:
        super().__init__(node, context)
        self._record_headers: Headers = ()
        self.looks_at_headers = wants_headers(node.key_serde) or wants_headers(node.value_serde)

    def _headers(self) -> Headers:
        """Those of the record being written."""
        return self._record_headers

    def serialize(
        self, topic: str, encode_key: Encode, encode_value: Encode, record: Record
    ) -> tuple[bytes | None, bytes | None]:
        """Key and value as bytes; the error says which of them failed."""
        key, value = record[0], record[1]
        part, given = "key", key
        try:
            key_bytes = None if key is None else encode_key(key)
            part, given = "value", value
            return key_bytes, None if value is None else encode_value(value)
        except ServiceError:
            raise
        except Exception as cause:
            error = self._serde_error(cause, topic, part, given)
            raise SerializationError(
                f"{self.node.name} ({self.node.origin}): the {part} {given!r:.80} ({type(given).__name__}) of a result "
                f"of {self.context.place} cannot be written to topic {topic}: {error}",
                self.context.place,
                self.node.name,
                self.node.origin,
            ) from error

    def _serde_error(self, cause: Exception, topic: str, part: str, given: Any) -> Exception:
        """The error of the serde itself for a failure of its fast path."""
        serde = self.node.key_serde if part == "key" else self.node.value_serde
        try:
            bound_serializer(serde)(topic, given, self._record_headers)
        except SerdeError as error:
            return error
        except Exception:
            return cause
        return cause

    def chosen_partitions(
        self, partitioner: PythonFunction, topic: str, record: Record, count: int
    ) -> tuple[int, ...] | None:
        """The partitions that the user's partitioner returns: an empty one drops the record, None uses the key hash."""
        chosen = partitioner.call(topic, record[0], record[1], count)
        if chosen is None:
            return None
        several = tuple(sorted(set(chosen))) if isinstance(chosen, Collection) else (chosen,)
        if not all(isinstance(one, int) and 0 <= one < count for one in several):
            raise ProcessingError(
                f"{self.node.name}: the partitioner chose {chosen!r} for topic {topic}, which has partitions 0 to "
                f"{count - 1} ({partitioner.origin})",
                self.context.place,
                self.node.name,
                partitioner.origin,
            )
        if not several:
            self.context.drop(self.node, "no partition chosen")
        return several


class SinkProcessor(_Output):
    """Writes to a topic, or to one that is chosen per record."""

    def __init__(self, node: ir.Sink, context: TaskContext) -> None:
        super().__init__(node, context)
        self._sink = node
        self._name = node.name
        self._encoders: dict[str, tuple[Encode, Encode]] = {}
        self._inner = node.key_serde.inner if isinstance(node.key_serde, WINDOWED_SERDES) else None
        self._hash = partition_hash()
        if self._inner is not None and node.topic is not None and node.topic not in context.partition_counts:
            self._inner = None
        is_simple = node.partitioner is None and self._inner is None and not self.looks_at_headers
        if node.topic is not None and is_simple:
            self._topic = node.topic
            self._encode_key, self._encode_value = self._encoders_of(node.topic)
        else:
            self.process = self._process_anywhere  # type: ignore[method-assign]

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        try:
            row = (
                self._name,
                self._topic,
                None if key is None else self._encode_key(key),
                None if value is None else self._encode_value(value),
                timestamp,
                headers,
                None,
            )
        except Exception:
            self.serialize(self._topic, self._encode_key, self._encode_value, record)
            raise
        self.context.outputs.append(row)

    @property
    def topic(self) -> str | None:
        """The topic, if there is one for all records."""
        return self._sink.topic

    @property
    def places_windows(self) -> bool:
        """Whether a windowed key goes to the partition of the key in it."""
        return self._inner is not None

    def explain(self, record: Record) -> None:
        """Raise the error of a record that cannot be serialized."""
        assert self._sink.topic is not None
        self.serialize(self._sink.topic, *self._encoders_of(self._sink.topic), record)

    def _process_anywhere(self, record: Record) -> None:
        topic = self._sink.topic
        self._record_headers = record.headers
        if self._sink.chooser is not None:
            topic = self._sink.chooser.call(record.key, record.value, self.context.record_context)
        if not isinstance(topic, str) or not topic:
            raise ProcessingError(
                f"{self._name} ({self._sink.origin}): the topic chosen for a record is {topic!r}, not a topic name",
                self.context.place,
                self._name,
                self._sink.origin,
            )
        key, value = self.serialize(topic, *self._encoders_of(topic), record)
        partitioner, outputs = self._sink.partitioner, self.context.outputs
        if partitioner is None:
            partition = self._partition_of_window(topic, record)
            outputs.append((self._name, topic, key, value, record.timestamp, record.headers, partition))
            return
        count = self.context.partition_counts.get(topic) or 1
        chosen = self.chosen_partitions(partitioner, topic, record, count)
        for one in (None,) if chosen is None else chosen:
            outputs.append((self._name, topic, key, value, record.timestamp, record.headers, one))

    def _partition_of_window(self, topic: str, record: Record) -> int | None:
        """The partition of a windowed key: that of the key itself, if the topic's partition count is known."""
        count = self.context.partition_counts.get(topic)
        if self._inner is None or count is None or record.key is None:
            return None
        return self._hash(bound_serializer(self._inner)(topic, record.key.key, record.headers), count)

    def _encoders_of(self, topic: str) -> tuple[Encode, Encode]:
        if topic not in self._encoders:
            self._encoders[topic] = (
                encoder(self._sink.key_serde, topic, self._headers),
                encoder(self._sink.value_serde, topic, self._headers),
            )
        return self._encoders[topic]


class RepartitionOutput(_Output):
    """Sends records to the task of their key's partition."""

    def __init__(self, node: ir.Repartition, context: TaskContext) -> None:
        super().__init__(node, context)
        self._name = node.name
        self.topic = context.settings.internal_topic(node.topic)
        self._count = context.partition_counts[node.topic]
        self._partitioner = node.partitioner
        self._drops_null_keys = node.drops_null_keys
        self._hash = partition_hash()
        self._encode_key = encoder(node.key_serde, self.topic, self._headers)
        encode_value = encoder(node.value_serde, self.topic, self._headers)
        self._encode_value = change_encoder(encode_value) if node.carries_changes else encode_value

    def process(self, record: Record) -> None:
        if self.looks_at_headers:
            self._record_headers = record[3]
        if record[0] is None and self._drops_null_keys:
            self.context.drop(self.node, "null key")
            return
        key, value = self.serialize(self.topic, self._encode_key, self._encode_value, record)
        if self._partitioner is not None:
            chosen = self.chosen_partitions(self._partitioner, self.topic, record, self._count)
            if chosen is not None:
                for one in chosen:
                    self.context.outputs.append((self._name, self.topic, key, value, record[2], record[3], one))
                return
        partition = 0 if key is None else self._hash(key, self._count)
        self.context.outputs.append((self._name, self.topic, key, value, record[2], record[3], partition))

    def explain(self, record: Record) -> None:
        """Raise the error of a record that cannot be serialized."""
        self.serialize(self.topic, self._encode_key, self._encode_value, record)
