"""A transaction coordinator with all that surrounds it, in memory: its log, partitions with producers, clients.

Commits lag behind appends, appends fail, markers arrive late and one by one, and the coordinator is killed in between:
what it has not appended is gone, and a new one replays the rest. Everything comes from one seed. The core, its shard
and the rules by which a partition judges producers are the real ones. Start at `World.run`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome, Producer
from moldau.coordinator.runtime.shard import Shard
from moldau.coordinator.transaction.core import Granted, TransactionCore, TransactionSettings
from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.states import FOLLOWS, TransactionState
from moldau.coordinator.transaction.transaction import Transaction
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.log.producer_state import Marker, ProducerStates
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader
from moldau.testing.simulation.kernel import Kernel

IDS = ("orders", "orders", "payments", "refunds")
"""Two of one id fence each other, again and again."""
PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
TIMEOUT_MS = 1000


class DiskFullError(MoldauError):
    code = ErrorCode.KAFKA_STORAGE_ERROR


class Log:
    """The coordinator's partition: survives it."""

    def __init__(self, random_: random.Random) -> None:
        self.records: list[CoordinatorRecord] = []
        self._random = random_
        self._waiting: list[Callable[[], None]] = []

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        if self._random.random() < 0.03:
            then(DiskFullError("full"))
            return
        self.records.extend(records)
        then(None)

    def when_committed(self, then: Callable[[], None]) -> None:
        self._waiting.append(then)

    def commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    def forget_waiting(self) -> None:
        self._waiting = []


@dataclass
class Batch:
    offset: int
    owner: Owner
    transaction: int
    """Which of its transactions the client meant."""


@dataclass
class Partition:
    """A log that holds batches and markers, and judges them as a real one does."""

    producers: ProducerStates = field(default_factory=ProducerStates)
    end: int = 0
    batches: list[Batch] = field(default_factory=list)
    fate: dict[int, bool] = field(default_factory=dict)
    """By offset of a batch whether its transaction was committed."""
    idle_markers: int = 0

    def append(self, owner: Owner, sequence: int, transaction: int) -> ErrorCode:
        header = _header(owner, sequence)
        try:
            if self.producers.check(header) is not None:
                return ErrorCode.NONE
        except MoldauError as error:
            return error.code
        self.producers.update(header, self.end, 0)
        self.batches.append(Batch(self.end, owner, transaction))
        self.end += 1
        return ErrorCode.NONE

    def has_open(self, owner: Owner) -> bool:
        state = self.producers.get(owner.producer_id)
        return state is not None and state.txn_first_offset is not None and state.producer_epoch == owner.producer_epoch

    def is_missing(self, owner: Owner) -> bool:
        state = self.producers.get(owner.producer_id)
        return state is None or state.txn_first_offset is not None or state.producer_epoch < owner.producer_epoch

    def mark(self, owner: Owner, is_commit: bool) -> None:
        state = self.producers.get(owner.producer_id)
        assert state is None or state.producer_epoch <= owner.producer_epoch, "a marker from the past"
        completed = self.producers.complete(_header(owner, -1), self.end, Marker(is_commit, 0), 0)
        if completed is None:
            self.idle_markers += 1
        else:
            for batch in self.batches:
                if batch.owner.producer_id == owner.producer_id and batch.offset >= completed.first_offset:
                    assert batch.offset not in self.fate, "decided twice"
                    self.fate[batch.offset] = is_commit
        self.end += 1

    @property
    def last_stable_offset(self) -> int:
        unstable = self.producers.first_unstable_offset(self.end)
        return self.end if unstable is None else unstable


def _header(owner: Owner, sequence: int) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, TRANSACTIONAL_BIT, 0, 0, 0, owner.producer_id, owner.producer_epoch, sequence, 1)


@dataclass
class Client:
    """A producer as a well-behaved application drives it. Two with the same id are a zombie and its successor."""

    transactional_id: str
    version: int
    owner: Owner | None = None
    transaction: int = 0
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    touched: set[TopicPartition] = field(default_factory=set)
    is_busy: bool = False
    end: bool | None = None
    """How it has asked for its transaction to end; it asks again until it is told."""


class World:
    def __init__(self, seed: int) -> None:
        self.kernel = Kernel(seed)
        self.random = self.kernel.random
        self.log = Log(self.random)
        self.partitions = {one: Partition() for one in PARTITIONS}
        self.clients = [Client(one, self.random.choice((0, 2))) for one in IDS]
        self.next_id = 0
        self.next_transaction = 0
        self.committed: set[int] = set()
        """Transactions whose commit was acknowledged."""
        self.aborted: set[int] = set()
        self.due: list[tuple[Transaction, set[TopicPartition]]] = []
        self.kills = 0
        self.start()

    def start(self) -> None:
        self.due = []
        core = TransactionCore(TransactionSettings(expiration_ms=20_000, expiry_interval_ms=5_000), on_ending=self._end)
        self.shard = Shard(core, self.log, on_deadline=lambda _: None, clock=lambda: self.now_ms)
        for key, value in self.log.records:
            core.replay(key, value)
        self.shard.activate(self.now_ms)

    def kill(self) -> None:
        self.kills += 1
        self.log.forget_waiting()
        for client in self.clients:
            client.is_busy = False  # its request failed, it will find out how things stand
        self.start()

    def _end(self, transaction: Transaction) -> None:
        self.log.when_committed(lambda: self.due.append((transaction, set(transaction.partitions))))

    @property
    def now_ms(self) -> int:
        return self.kernel.now_ms

    # --- one step ---------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        for number in range(steps):
            self.step()
            if number % 16 == 0:
                self.check()
        self.settle()

    def step(self) -> None:
        dice = self.random.random()
        if dice < 0.50:
            self.act(self.random.choice(self.clients))
        elif dice < 0.75:
            self.log.commit()
        elif dice < 0.95:
            self.write_one_marker()
        elif dice < 0.985:
            self.kernel.run_for(self.random.choice((1, 300, 2 * TIMEOUT_MS)))
            self.shard.on_time(self.now_ms)
        elif dice < 0.99:
            self.kernel.run_for(30_000)
            self.shard.on_time(self.now_ms)
        else:
            self.kill()

    def settle(self) -> None:
        """Let everything come to its end: all that is open is overdue, all that is due is written."""
        for _ in range(60):
            self.kernel.run_for(11_000)
            self.shard.on_time(self.now_ms)
            self.log.commit()
            while self.due:
                self.write_one_marker()

    def write_one_marker(self) -> None:
        if not self.due:
            return
        transaction, missing = self.due[0]
        marker = Owner(transaction.producer_id, transaction.producer_epoch)
        for _ in range(self.random.choice((1, 3))):
            if missing:
                partition = self.partitions[missing.pop()]
                if partition.is_missing(marker):
                    partition.mark(marker, transaction.is_commit)
        if not missing:
            self.due.pop(0)
            self.shard.carry_out(self.shard.core.markers_written(transaction, self.now_ms))
            if transaction.transactional_id in self.shard.core.ending:
                self.due.append((transaction, set(transaction.partitions)))  # the disk refused: again

    # --- clients ----------------------------------------------------------------------------------------

    def ask(self, client: Client, decide: Callable[..., Outcome], then: Callable[[Any], None]) -> None:
        client.is_busy = True

        def answer(reply: Any) -> None:
            client.is_busy = False
            then(reply)

        self.shard.ask(decide, answer, self.now_ms)

    def act(self, client: Client) -> None:
        if client.is_busy:
            return
        if client.owner is None:
            if self.random.random() < 0.3:
                self.init(client)
        elif client.end is not None:
            self.end(client, is_commit=client.end)
        elif not client.touched or self.random.random() < 0.6:
            self.produce(client, self.random.choice(PARTITIONS))
        else:
            self.end(client, is_commit=self.random.random() < 0.7)

    def init(self, client: Client) -> None:
        self.next_id += 1
        fresh = self.next_id

        def granted(reply: Any) -> None:
            if isinstance(reply, Granted) and reply.error is ErrorCode.NONE:
                self.take(client, reply)

        self.ask(
            client,
            lambda core, ticket, now: core.init_producer_id(
                client.transactional_id, TIMEOUT_MS, None, fresh, ticket, now
            ),
            granted,
        )

    def take(self, client: Client, reply: Granted) -> None:
        client.owner = Owner(reply.producer_id, reply.producer_epoch)
        client.sequences = {}
        self.begin(client)

    def begin(self, client: Client) -> None:
        self.next_transaction += 1
        client.transaction = self.next_transaction
        client.touched = set()
        client.end = None

    def produce(self, client: Client, partition: TopicPartition) -> None:
        owner = client.owner
        assert owner is not None

        def added(reply: Any) -> None:
            if reply is ErrorCode.NONE:
                self.append(client, owner, partition)
            elif reply in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
                client.owner = None

        self.ask(
            client,
            lambda core, ticket, now: core.add_partitions(
                client.transactional_id, owner, [partition], client.version, ticket, now
            ),
            added,
        )

    def append(self, client: Client, owner: Owner, partition: TopicPartition) -> None:
        """As the partition's leader does: nothing goes in that the coordinator does not know of."""
        target = self.partitions[partition]
        if not target.has_open(owner):
            verdict = self.shard.core.verify_partitions(client.transactional_id, owner, [partition])[partition]
            if verdict is not ErrorCode.NONE:
                client.owner = None if verdict is not ErrorCode.CONCURRENT_TRANSACTIONS else client.owner
                return
        sequence = client.sequences.get(partition, 0)
        code = target.append(owner, sequence, client.transaction)
        if code is ErrorCode.NONE:
            client.sequences[partition] = sequence + 1
            client.touched.add(partition)
        else:
            client.owner = None

    def end(self, client: Client, *, is_commit: bool) -> None:
        owner, transaction = client.owner, client.transaction
        assert owner is not None
        client.end = is_commit
        self.next_id += 1
        fresh = self.next_id

        def ended(reply: Any) -> None:
            if not isinstance(reply, Granted) or reply.error in (
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ):
                return
            if reply.error is not ErrorCode.NONE:
                client.owner = None
                return
            (self.committed if is_commit else self.aborted).add(transaction)
            if client.version == 2:
                self.take(client, reply)
            else:
                self.begin(client)

        self.ask(
            client,
            lambda core, ticket, now: core.end_transaction(
                client.transactional_id, owner, is_commit, client.version, fresh, ticket, now
            ),
            ended,
        )

    # --- what must always hold --------------------------------------------------------------------------

    def check(self) -> None:
        replayed = TransactionCore()
        for key, value in self.log.records:
            replayed.replay(key, value)
        assert replayed.transactions == self.shard.core.transactions
        assert replayed.ending == self.shard.core.ending
        for partition in self.partitions.values():
            open_batches = [batch.offset for batch in partition.batches if batch.offset not in partition.fate]
            assert partition.last_stable_offset <= min(open_batches, default=partition.end)

    def check_history(self) -> None:
        """Each state follows one that it may follow, and epochs only rise."""
        known: dict[str, Transaction] = {}
        steps = TransactionCore()
        for key, value in self.log.records:
            steps.replay(key, value)
            for transactional_id in set(known) - set(steps.transactions):
                assert known.pop(transactional_id).state.is_over
            for transactional_id, now in steps.transactions.items():
                before = known.get(transactional_id)
                if before is not None and before != now:
                    assert before.state in FOLLOWS[now.state], (before, now)
                    if before.producer_id == now.producer_id:
                        assert before.producer_epoch <= now.producer_epoch
                known[transactional_id] = now

    def check_settled(self) -> None:
        """Everything is decided, as those were told who asked, and no transaction is torn."""
        for transaction in self.shard.core.transactions.values():
            assert transaction.state is not TransactionState.ONGOING
            assert not transaction.state.is_ending
        fates: dict[int, set[bool]] = {}
        for partition in self.partitions.values():
            assert partition.last_stable_offset == partition.end
            for batch in partition.batches:
                fates.setdefault(batch.transaction, set()).add(partition.fate[batch.offset])
        for transaction_number, fate in fates.items():
            assert len(fate) == 1, "torn"
            if transaction_number in self.committed:
                assert fate == {True}
            if transaction_number in self.aborted:
                assert fate == {False}
