"""The transaction coordinator's core: all transactional ids of one partition of `__transaction_state`.

Takes requests and the time, returns records and replies. The state of a transactional id changes only in `replay`, so
a restart restores it. Once a transaction's end is in the log the core calls `on_ending`; the caller writes a marker
into every partition and then calls `markers_written`. After a restart this is repeated for unfinished ones. Soft
state: deadlines, and the previous epoch of an owner. Start at `TransactionCore.init_producer_id`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from moldau.coordinator.runtime.deadlines import Deadlines
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome, Producer, Ticket
from moldau.coordinator.transaction import endings, requests
from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.states import TransactionState
from moldau.coordinator.transaction.transaction import (
    EPOCH_BUMPED_AT_END,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    Version,
)
from moldau.core.config.sections import setting
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.coordinator_records import (
    TRANSACTION_KEYS,
    TransactionLogKey,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from moldau.protocol.record_schemas import MalformedRecordError

__all__ = ["Granted", "TransactionCore", "TransactionSettings"]

log = logging.getLogger(__name__)

TOMBSTONES_AT_ONCE: Final = 1000
"""The most records of one expiry: they have to fit into one batch and must not delay requests for long."""
SOON_MS: Final = 1000

_EXPIRY: Final = object()
"""The deadline of the search for expired transactional ids."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    max_timeout_ms: int = setting("transaction.max.timeout.ms")
    expiration_ms: int = setting("transactional.id.expiration.ms")
    """How long a transactional id is remembered after its last transaction."""
    retry_abort_ms: int = setting("transaction.abort.timed.out.transaction.cleanup.interval.ms")
    """How long after a failed attempt to abort an overdue transaction it is retried; Kafka's interval of checks for
    overdue ones."""
    expiry_interval_ms: int = setting("transaction.remove.expired.transaction.cleanup.interval.ms")
    is_verified: bool = setting("transaction.partition.verification.enable")
    """Whether partition leaders verify a batch with the coordinator before they append it (KIP-890)."""
    join_backoff_ms: int = setting("add.partitions.to.txn.retry.backoff.ms")
    join_timeout_ms: int = setting("add.partitions.to.txn.retry.backoff.max.ms")


class Granted(NamedTuple):
    """The answer to InitProducerId and EndTxn: an error, or the id and epoch to go on with."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


def _ignore(transaction: Transaction) -> None:
    """The default `on_ending`: writes no markers, for tests of the core alone."""


class TransactionCore:
    def __init__(
        self, settings: TransactionSettings | None = None, *, on_ending: Callable[[Transaction], None] = _ignore
    ) -> None:
        self._settings = settings or TransactionSettings()
        self._on_ending = on_ending
        self.transactions: dict[str, Transaction] = {}
        self.ending: dict[str, Transaction] = {}
        """Transactions whose end is decided and whose markers are not yet confirmed."""
        self.timed_out = 0
        """Transactions aborted because they took too long."""
        self._is_loaded = False
        self._deadlines = Deadlines()
        self._given_up: dict[str, tuple[Owner, int]] = {}
        """By transactional id: the current owner, and the epoch it had before it asked for the current one."""

    # --- requests ---------------------------------------------------------------------------------------

    def needs_producer_id(self, transactional_id: str, expected: Owner | None) -> bool:
        """Whether `init_producer_id` has to be given a fresh id."""
        return requests.needs_producer_id(self.transactions.get(transactional_id), expected)

    def init_producer_id(  # noqa: PLR0917
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Owner | None,
        fresh_id: int,
        ticket: Ticket,
        now_ms: int,
    ) -> Outcome:
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            return _answer(ticket, Granted(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        before = self.transactions.get(transactional_id)
        last_epoch = self._epoch_given_up(before)
        after = requests.initialize(transactional_id, before, expected, last_epoch, fresh_id, timeout_ms, now_ms)
        if isinstance(after, ErrorCode):
            return _answer(ticket, Granted(after))
        if after.state.is_ending:
            # The client retries, and by then the transaction of its predecessor has ended.
            return Outcome([_record(after)], [(ticket, Granted(ErrorCode.CONCURRENT_TRANSACTIONS))])
        outcome = Outcome([_record(after)], [(ticket, _grant_of(after))])
        if before is not None:
            is_repeated = _owner(after) == _owner(before)
            given_up = last_epoch if is_repeated else before.producer_epoch
            outcome.then = lambda: self._remember_epoch(after, NO_EPOCH if expected is None else given_up)
        return outcome

    def add_partitions(  # noqa: PLR0917
        self,
        transactional_id: str,
        owner: Owner,
        partitions: Iterable[TopicPartition],
        version: Version,
        ticket: Ticket,
        now_ms: int,
    ) -> Outcome:
        """The reply is an `ErrorCode`, the same for every partition."""
        before = self.transactions.get(transactional_id)
        after = requests.join(before, owner, partitions, version, now_ms)
        if isinstance(after, ErrorCode):
            return _answer(ticket, after)
        return Outcome([] if after is before else [_record(after)], [(ticket, ErrorCode.NONE)])

    def verify_partitions(
        self, transactional_id: str, owner: Owner, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether batches of this producer may go into these partitions."""
        return requests.verify(self.transactions.get(transactional_id), owner, partitions)

    def ending_needs_producer_id(self, transactional_id: str, version: Version) -> bool:
        """Whether `end_transaction` has to be given a fresh id."""
        return endings.ending_needs_producer_id(self.transactions.get(transactional_id), version)

    def end_transaction(  # noqa: PLR0917
        self,
        transactional_id: str,
        owner: Owner,
        is_commit: bool,
        version: Version,
        fresh_id: int,
        ticket: Ticket,
        now_ms: int,
    ) -> Outcome:
        before = self.transactions.get(transactional_id)
        after = endings.end_transaction(before, owner, is_commit, version, fresh_id, now_ms)
        if isinstance(after, ErrorCode):
            return _answer(ticket, Granted(after))
        if after is before:
            return _answer(ticket, _grant_of(after))
        completed = after.completed(now_ms)
        # Without partitions there are no markers to wait for.
        records = [_record(after)] if after.partitions else [_record(after), _record(completed)]
        outcome = Outcome(records, [(ticket, _grant_of(completed))])
        if version >= EPOCH_BUMPED_AT_END:
            outcome.then = lambda: self._remember_epoch(completed, owner.producer_epoch)
        return outcome

    def markers_written(self, transaction: Transaction, now_ms: int) -> Outcome:
        """Every partition has its marker. Ignored if the transaction has changed since the markers were requested."""
        if self.ending.get(transaction.transactional_id) != transaction:
            return Outcome()
        return Outcome([_record(transaction.completed(now_ms))])

    # --- replay -----------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, producer: Producer | None = None) -> None:
        try:
            known = decode_key(key, TRANSACTION_KEYS)
            if not isinstance(known, TransactionLogKey):
                return
            if value is None:
                self._forget(known.transactional_id)
                return
            record = decode_value(known, value)
            assert isinstance(record, TransactionLogValue)
            self._replace(Transaction.of_record(known.transactional_id, record))
        except MalformedRecordError as error:
            log.error("skipping a record of __transaction_state that cannot be read: %s", error)

    def _forget(self, transactional_id: str) -> None:
        self.transactions.pop(transactional_id, None)
        self.ending.pop(transactional_id, None)
        self._given_up.pop(transactional_id, None)
        self._deadlines.cancel(transactional_id)

    def _replace(self, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id
        self.transactions[transactional_id] = transaction
        self.ending.pop(transactional_id, None)
        if transaction.state is TransactionState.ONGOING:
            self._deadlines.set(transactional_id, transaction.start_ms + transaction.timeout_ms)
            return
        self._deadlines.cancel(transactional_id)
        if transaction.state.is_ending:
            self.ending[transactional_id] = transaction
            if self._is_loaded:
                self._on_ending(transaction)

    def replay_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """Ignored: `__transaction_state` has no transactional records."""

    def on_loaded(self, now_ms: int) -> None:
        self._is_loaded = True
        for transaction in list(self.ending.values()):
            self._on_ending(transaction)
        self._deadlines.set(_EXPIRY, now_ms + self._settings.expiry_interval_ms)

    # --- time -------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def on_time(self, now_ms: int) -> Outcome:
        due = self._deadlines.pop_due(now_ms)
        if due is _EXPIRY:
            expired = self._expired_transactions(now_ms)
            is_all = len(expired) <= TOMBSTONES_AT_ONCE
            self._deadlines.set(_EXPIRY, now_ms + (self._settings.expiry_interval_ms if is_all else SOON_MS))
            return Outcome([_tombstone(transaction) for transaction in expired[:TOMBSTONES_AT_ONCE]])
        transaction = self.transactions.get(due) if isinstance(due, str) else None
        if transaction is None or transaction.state is not TransactionState.ONGOING:
            return Outcome()
        # Until the record is in the log the transaction remains overdue.
        self._deadlines.set(transaction.transactional_id, now_ms + self._settings.retry_abort_ms)
        return Outcome([_record(transaction.fenced(now_ms))], then=self._count_timed_out)

    def _count_timed_out(self) -> None:
        self.timed_out += 1

    def _expired_transactions(self, now_ms: int) -> list[Transaction]:
        oldest_ms = now_ms - self._settings.expiration_ms
        return [one for one in self.transactions.values() if one.state.is_over and one.last_update_ms <= oldest_ms]

    # --- the previous epoch -------------------------------------------------------------------------------

    def _epoch_given_up(self, transaction: Transaction | None) -> int:
        """The previous epoch, if its owner asked for the current one; none after another producer took over."""
        if transaction is None:
            return NO_EPOCH
        owner, epoch = self._given_up.get(transaction.transactional_id, (None, NO_EPOCH))
        return epoch if owner == _owner(transaction) else NO_EPOCH

    def _remember_epoch(self, transaction: Transaction, epoch: int) -> None:
        self._given_up[transaction.transactional_id] = (_owner(transaction), epoch)


def _owner(transaction: Transaction) -> Owner:
    return Owner(transaction.producer_id, transaction.producer_epoch)


def _grant_of(transaction: Transaction) -> Granted:
    return Granted(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch)


def _answer(ticket: Ticket, reply: Granted | ErrorCode) -> Outcome:
    return Outcome(replies=[(ticket, reply)])


def _record(transaction: Transaction) -> CoordinatorRecord:
    key = encode_key(TransactionLogKey(transactional_id=transaction.transactional_id))
    return CoordinatorRecord(key, encode_value(transaction.record_value()))


def _tombstone(transaction: Transaction) -> CoordinatorRecord:
    return CoordinatorRecord(encode_key(TransactionLogKey(transactional_id=transaction.transactional_id)), None)
