"""The inputs of a task: deserialize records and advance stream time.

One `Input` serves one source or one repartitioning. `Input.feed` is the innermost loop of a task; start there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from moldau.core.errors import ServiceError
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import DeserializationError, ExtractedTimestampError, service_failure
from moldau.pipeline.cores.handlers import Response, decision
from moldau.pipeline.cores.processor import Forward
from moldau.pipeline.cores.records import NO_TIMESTAMP, InputRecord, Record
from moldau.pipeline.cores.serialization import Decode, change_decoder, decoder
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.timestamps import Extractor
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import RowTimestamp
from moldau.serdes.serde import Headers, bound_deserializer

if TYPE_CHECKING:
    from moldau.pipeline.cores.fusing.fused import Fused

__all__ = ["Input", "Row"]

Row = Sequence[Any]
"""A record in the order of `InputRecord`."""

_new = tuple.__new__


class Input:
    """Reads the rows of one source node."""

    def __init__(
        self,
        node: ir.Source | ir.Repartition,
        context: TaskContext,
        take: Forward,
        *,
        has_schedules: bool,
        find_fused: Callable[[], Fused | None] = lambda: None,
    ) -> None:
        """`has_schedules` says whether punctuations by stream time are possible."""
        self.node = node
        self._context = context
        self._take = take
        self._decoders: dict[str, tuple[Decode, Decode]] = {}
        self._timestamps = _extractor(node, context)
        self._row_timestamp = _row_timestamp(node)
        self._has_extractor = self._timestamps is not None or self._row_timestamp is not None
        # Records of global tables advance neither stream time nor schedules.
        is_global = isinstance(node, ir.GlobalTableSource)
        self._stream_time = Cell("", NO_TIMESTAMP) if is_global else context.stream_time_cell
        self._has_schedules = has_schedules and not is_global
        self._find_fused = find_fused

    def feed(self, rows: Iterable[Row]) -> None:
        """Process records in order, each completely before the next."""
        context, take, stream_time = self._context, self._take, self._stream_time
        punctuate = context.punctuations.punctuate_stream_time if self._has_schedules else None
        finish = context.finish_record if context.at_record_end else None
        topic: str | None = None
        decode_key: Decode = bytes
        decode_value: Decode = bytes
        for row in rows:
            row_topic, _, _, timestamp, headers, key, value = row
            if row_topic != topic:
                topic = row_topic
                decode_key, decode_value = self._decoders_of(row_topic)
            context.current = row  # type: ignore[assignment]
            try:
                if key is not None:
                    key = decode_key(key)
                if value is not None:
                    value = decode_value(value)
            except ServiceError as error:
                raise service_failure(error, context.place, self.node.name, self.node.origin) from error
            except Exception as error:
                self._handle_unreadable(row, error)
                continue
            if self._has_extractor or timestamp < 0:
                timestamp = self._extract_timestamp(row, key, value)
                if timestamp < 0:
                    continue
            if timestamp > stream_time.value:  # noqa: PLR1730, a call of max() costs too much here
                stream_time.value = timestamp
            take(_new(Record, (key, value, timestamp, headers)))
            if finish is not None:
                finish()
            if punctuate is not None:
                punctuate()
                if finish is not None:
                    finish()

    @cached_property
    def fused(self) -> Fused | None:
        """This input and all behind it as one loop, if that is possible; made when it is first asked for."""
        if self._has_extractor or self._has_schedules or self._context.at_record_end:
            return None
        return self._find_fused()

    def _decoders_of(self, topic: str) -> tuple[Decode, Decode]:
        if topic not in self._decoders:
            decode_value = decoder(self.node.value_serde, topic, self._headers)
            if isinstance(self.node, ir.Repartition) and self.node.carries_changes:
                decode_value = change_decoder(decode_value)
            self._decoders[topic] = (decoder(self.node.key_serde, topic, self._headers), decode_value)
        return self._decoders[topic]

    def _headers(self) -> Headers:
        """Those of the record being read."""
        headers: Headers = self._context.current[4]  # type: ignore[index]
        return headers

    def _extract_timestamp(self, row: Row, key: Any, value: Any) -> int:
        """The timestamp that the user's extractor returns; without an extractor, the record must have one."""
        if self._row_timestamp is not None:
            timestamp = self._row_timestamp(key, value)
            if timestamp < 0:
                self._context.drop(self.node, "negative extracted timestamp")
            return timestamp
        if self._timestamps is None:
            raise ExtractedTimestampError(
                f"{self._context.place}: the record has no timestamp ({row[3]}); give the source a timestamp extractor",
                self._context.place,
                self.node.name,
                self.node.origin,
            )
        cell = self._context.cell(f"partition-time {self.node.name} {row[0]} {row[1]}", NO_TIMESTAMP)
        record = InputRecord(*row)._replace(key=key, value=value)
        timestamp = int(self._timestamps(record, cell.value))
        if timestamp < 0:
            self._context.drop(self.node, "negative extracted timestamp")
        else:
            cell.value = max(cell.value, timestamp)
        return timestamp

    def _handle_unreadable(self, row: Row, cause: Exception) -> None:
        context = self._context
        error = DeserializationError(
            f"{context.place}: {self._problem_with(row, cause)} (read by {self.node.name}, {self.node.origin}); "
            "fix the serde, or set deserialization.exception.handler to log-and-continue",
            context.place,
            self.node.name,
            self.node.origin,
        )
        error.__cause__ = cause
        response = decision(context.settings.deserialization_handler, error, InputRecord(*row))
        context.dead_letter(error)
        context.processing_log.deserialization_failed(self.node.name, cause)
        if response is Response.FAIL:
            raise error
        context.drop(self.node, "cannot be read")

    def _problem_with(self, row: Row, cause: Exception) -> str:
        """Which part cannot be read, with the error of the serde itself rather than that of its fast path."""
        for part, serde, data in (("key", self.node.key_serde, row[5]), ("value", self.node.value_serde, row[6])):
            try:
                if data is not None:
                    bound_deserializer(serde)(row[0], data, row[4])
            except Exception as error:
                return f"the {part} {data!r:.80} cannot be read: {error}"
        return f"the record cannot be read: {cause}"


def _extractor(node: ir.Source | ir.Repartition, context: TaskContext) -> Extractor | None:
    # Records from another sub-topology already have their timestamp.
    if isinstance(node, ir.Repartition) or isinstance(node.timestamps, RowTimestamp):
        return None
    return node.timestamps.call if node.timestamps is not None else context.settings.timestamps


def _row_timestamp(node: ir.Source | ir.Repartition) -> Callable[[Any, Any], int] | None:
    """The timestamp of a row's own column; it needs no state, unlike a user's extractor."""
    if isinstance(node, ir.Repartition) or not isinstance(node.timestamps, RowTimestamp):
        return None
    from moldau.pipeline.cores.row_functions import compiled

    return compiled(node.timestamps)
