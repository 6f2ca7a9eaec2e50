"""The steps of a foreign-key join; `ir.foreign_key` has the overview.

Instructions, responses and the moment of tombstones are those of Kafka Streams. A response finds its left row by key;
if the row has changed since it subscribed (one record may change a row several times before any response arrives), its
digest differs and the response is dropped. Start at `SubscribeProcessor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from moldau.pipeline.cores.calls import callable_of, joiner_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Link, Processor
from moldau.pipeline.cores.records import Change, OutdatedChange, Record
from moldau.pipeline.cores.serialization import encoder
from moldau.pipeline.cores.stores.key_value_store import KeyValueStore
from moldau.pipeline.cores.stores.store import Codec, codec_of
from moldau.pipeline.cores.stores.subscriptions import Subscriptions
from moldau.pipeline.cores.tables import table_source
from moldau.pipeline.ir.foreign_key import (
    DIGEST_SIZE,
    ForeignKeyLookup,
    ForeignKeyResolve,
    ForeignKeyRows,
    ForeignKeySubscribe,
    Instruction,
    LeftRow,
    Response,
    Subscription,
)
from moldau.pipeline.ir.nodes import JoinKind, Materialization

__all__ = ["RowsProcessor", "SubscribeProcessor", "foreign_key_lookup", "foreign_key_resolve"]

LEFT, RIGHT = "left", "right"


def digest_of(value: bytes) -> bytes:
    """The digest that identifies a version of a left row in subscriptions and responses."""
    return blake2b(value, digest_size=DIGEST_SIZE).digest()


class RowsProcessor(Processor):
    """Next to the left table: sends the rows, unchanged, to the last step."""

    def __init__(self, node: ForeignKeyRows, context: TaskContext) -> None:
        super().__init__(node, context)
        self._encode = _codec(context, node.left_table, LEFT).encode_value

    def process(self, record: Record) -> None:
        new = record.value.new
        if type(record.value) is not OutdatedChange:
            row = LeftRow(self.context.partition, None if new is None else self._encode(new))
            self.forward(record.with_value(row))


class SubscribeProcessor(Processor):
    """Next to the left table: a change of a row becomes a subscription, and the deletion of the previous one."""

    def __init__(self, node: ForeignKeySubscribe, context: TaskContext) -> None:
        super().__init__(node, context)
        self._extract = callable_of(
            node.extractor,
            *(("key", "value") if node.extractor_has_key else ("value",)),
            log=context.processing_log,
        )
        self._has_key = node.extractor_has_key
        self._codec = _codec(context, node.left_table, LEFT)
        self._encode_foreign_key = encoder(node.foreign_key_serde, _topic(context, node.left_table, RIGHT))
        self._instruct = self._instruct_left if node.kind is JoinKind.LEFT else self._instruct_inner

    def process(self, record: Record) -> None:
        change: Change = record.value
        if type(change) is OutdatedChange:
            self.context.drop(self.node, "older than the row")
            return
        old = self._foreign_key(record.key, change.old)
        new = self._foreign_key(record.key, change.new)
        self._instruct(record, old, new)

    def _instruct_left(self, record: Record, old: Any, new: Any) -> None:
        """Subscribe for a left join, which needs a response to every change; a deletion has a null foreign key."""
        if record.value.new is None and record.value.old is None:
            return
        if old is not None and self._is_other(old, new):
            self._subscribe(record, old, Instruction.UNSUBSCRIBE)
        self._subscribe(record, new, Instruction.ANSWER)

    def _instruct_inner(self, record: Record, old: Any, new: Any) -> None:
        """Subscribe for an inner join, which needs no response where there was no result before and is none now."""
        if new is None:
            if record.value.new is not None:
                self.context.drop(self.node, "null foreign key")
            if old is not None:
                self._subscribe(record, old, Instruction.UNSUBSCRIBE_AND_ANSWER)
        elif old is not None and self._is_other(old, new):
            self._subscribe(record, old, Instruction.UNSUBSCRIBE)
            self._subscribe(record, new, Instruction.ANSWER)
        else:
            self._subscribe(record, new, Instruction.ANSWER_IF_FOUND)

    def _foreign_key(self, key: Any, value: Any) -> Any:
        if value is None:
            return None
        return self._extract(key, value) if self._has_key else self._extract(value)

    def _is_other(self, old: Any, new: Any) -> bool:
        return new is None or self._encode_foreign_key(old) != self._encode_foreign_key(new)

    def _subscribe(self, record: Record, foreign_key: Any, instruction: Instruction) -> None:
        value = record.value.new
        subscription = Subscription(
            instruction,
            self._codec.encode_key(record.key),
            self.context.partition,
            None if value is None else digest_of(self._codec.encode_value(value)),
        )
        self.forward(Record(foreign_key, subscription, record.timestamp, record.headers))


def foreign_key_lookup(node: ForeignKeyLookup, context: TaskContext) -> tuple[Processor, ...]:
    """Next to the right table: the processor of subscriptions, and that of the table's changes."""
    name = node.subscriptions.store
    store = context.open(node.subscriptions, Subscriptions, lambda: Subscriptions(name, context.backend(name)))
    return SubscriptionsProcessor(node, context, store), ForeignTableProcessor(node, context, store)


class _Answering(Processor):
    """The base of both sides of the lookup: sends responses to left rows.

    Responses are sent after the current record is processed: if it changes both tables in this task, the left row has
    then been sent already and arrives before the responses that it makes outdated.
    """

    def __init__(self, node: ForeignKeyLookup, context: TaskContext, store: Subscriptions) -> None:
        super().__init__(node, context)
        self.store = store
        self.encode_foreign_key = _codec(context, node.right_table, RIGHT).encode_key
        self._decode_primary_key = _codec(context, node.left_table, LEFT).decode_key
        self._encode_right = _codec(context, node.right_table, RIGHT).encode_value
        self._answers: list[Record] = []
        context.at_record_end.append(self._send)

    def answer(self, subscription: Subscription, right: Any, record: Record, timestamp: int) -> None:
        """Respond to a subscription; `record` is the cause."""
        response = Response(
            subscription.primary_partition, subscription.digest, None if right is None else self._encode_right(right)
        )
        key = self._decode_primary_key(subscription.primary_key)
        self._answers.append(Record(key, response, timestamp, record.headers))

    def _send(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            for answer in answers:
                self.forward(answer)


class SubscriptionsProcessor(_Answering):
    """Stores subscriptions, and responds with the current right row."""

    def __init__(self, node: ForeignKeyLookup, context: TaskContext, store: Subscriptions) -> None:
        super().__init__(node, context, store)
        self._row = context.view(node.right).get

    def process(self, record: Record) -> None:
        foreign_key, subscription, timestamp, _ = record
        instruction = subscription.instruction
        if foreign_key is None and instruction is not Instruction.ANSWER:
            self.context.drop(self.node, "null foreign key")
            return
        row = None
        if foreign_key is not None:
            self._remember(self.encode_foreign_key(foreign_key), subscription)
            row = self._row(foreign_key)
        if row is not None:
            timestamp = max(timestamp, row.timestamp)
        match instruction:
            case Instruction.UNSUBSCRIBE_AND_ANSWER:
                self.answer(subscription, None, record, timestamp)
            case Instruction.ANSWER:
                self.answer(subscription, None if row is None else row.value, record, timestamp)
            case Instruction.ANSWER_IF_FOUND if row is not None:
                self.answer(subscription, row.value, record, timestamp)
            case _:
                pass

    def _remember(self, foreign_key: bytes, subscription: Subscription) -> None:
        if subscription.instruction in {Instruction.UNSUBSCRIBE, Instruction.UNSUBSCRIBE_AND_ANSWER}:
            self.store.delete(foreign_key, subscription.primary_key)
        else:
            self.store.put(foreign_key, subscription)


class ForeignTableProcessor(_Answering):
    """Sends a change of a right row to all its subscribers, with the timestamp of the change."""

    def process(self, record: Record) -> None:
        if record.key is None or type(record.value) is OutdatedChange:
            self.context.drop(self.node, "null key" if record.key is None else "older than the row")
            return
        for subscription in self.store.of(self.encode_foreign_key(record.key)):
            self.answer(subscription, record.value.new, record, record.timestamp)


def foreign_key_resolve(node: ForeignKeyResolve, context: TaskContext) -> tuple[Processor, ...]:
    """Partitioned by left key: the processor of left rows, and that of responses."""
    rows = context.key_value_store(node.rows)
    return LeftRowsProcessor(node, context, rows), ResponsesProcessor(node, context, rows)


class LeftRowsProcessor(Processor):
    """Stores the left rows."""

    def __init__(self, node: ForeignKeyResolve, context: TaskContext, rows: KeyValueStore) -> None:
        super().__init__(node, context)
        self._rows = rows
        self._encode_key = _codec(context, node.left_table, LEFT).encode_key

    def process(self, record: Record) -> None:
        self._rows.put(self._encode_key(record.key), record.value.value)


class ResponsesProcessor(Processor):
    """Responses become rows of the joined table."""

    def __init__(self, node: ForeignKeyResolve, context: TaskContext, rows: KeyValueStore) -> None:
        super().__init__(node, context)
        self._rows = rows
        self._result = table_source(node, context)
        self._joiner = joiner_of(node.joiner, has_key=node.has_key)
        self._is_left = node.kind is JoinKind.LEFT
        self._left = _codec(context, node.left_table, LEFT)
        self._decode_right = _codec(context, node.right_table, RIGHT).decode_value

    def process(self, record: Record) -> None:
        key, response, timestamp, headers = record
        row: bytes | None = self._rows.get(self._left.encode_key(key))
        if response.digest != (None if row is None else digest_of(row)):
            self.context.drop(self.node, "the left row has changed since it asked")
            return
        self._result.process(Record(key, self._join(key, row, response.right), timestamp, headers))

    def link(self, children: Sequence[Link]) -> None:
        self._result.link(children)

    def _join(self, key: Any, row: bytes | None, right: bytes | None) -> Any:
        if right is None and not (self._is_left and row is not None):
            return None
        left_value = None if row is None else self._left.decode_value(row)
        right_value = None if right is None else self._decode_right(right)
        return self._joiner(key, left_value, right_value)


def _codec(context: TaskContext, table: Materialization, side: str) -> Codec:
    return codec_of(table, _topic(context, table, side))


def _topic(context: TaskContext, table: Materialization, side: str) -> str:
    """The topic name for serdes with schemas; that of both sides is derived from the subscription store."""
    return context.settings.internal_topic(f"{table.store}-{side}")
