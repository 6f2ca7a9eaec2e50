"""A topic as the storage of a service: replayed before the service starts, and reading its own writes.

The service gives an `apply` callback, which gets every record in the order of its partition, those of other writers
and its own alike: nothing else changes the service's state. `append` returns when the record was stored by all in-sync
replicas and has been applied here. While brokers are unreachable the state stays as it was, writes fail with a timeout,
and reading resumes by itself when they are back. Made for Connect, ksql and the schema registry.

Two threads wait for brokers, one reading and one writing; `apply` and everything else run on the event loop that
called `start`. The topic itself is behind `LogTopic`: the real one is `client.coordination.state_topic`, tests use
a fake. Start at `TopicLog`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from moldau.client.coordination.outages import Outage, log_while_waiting
from moldau.client.errors import ClientError, FencedError, UnreachableError
from moldau.client.waiting import in_daemon_thread, join_thread

__all__ = [
    "Apply",
    "LogReader",
    "LogRecord",
    "LogTopic",
    "LogWrite",
    "LogWriter",
    "Offsets",
    "ReadBatch",
    "RecordTooLargeError",
    "TopicFacts",
    "TopicLog",
    "TopicLogError",
    "TopicLogTimeoutError",
    "WriteOutcome",
]

POLL_S: Final = 0.1
RETRY_S: Final = 0.5
CLOSE_WRITER_S: Final = 1.0
GRACE_S: Final = 1.0
"""How much longer than the client's own timeout a write is waited for: the client's error is more precise than ours."""
MAX_UNAPPLIED_BATCHES: Final = 8
"""The reading thread waits when the event loop is this far behind, so that a long replay does not fill the memory."""
MAX_WAITING_WRITES: Final = 10_000

Offsets = Mapping[int, int]
"""An offset for each partition."""


class TopicLogError(ClientError):
    """The topic could not be written or read; a write may have been stored nevertheless."""


class TopicLogTimeoutError(TopicLogError):
    """The brokers did not answer in time; a write may have been stored nevertheless."""


class RecordTooLargeError(TopicLogError):
    """The record is larger than the topic accepts; nothing was written."""


class LogRecord(NamedTuple):
    """A record as it was read."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    """`None` for a tombstone."""
    timestamp_ms: int | None = None


class LogWrite(NamedTuple):
    """A record to be written."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    """Without one the key decides, as with Java's default partitioner."""


Apply = Callable[[LogRecord], None]
"""Applies a record to the service's state. If it raises, the record is logged and skipped."""

WriteOutcome = Offsets | ClientError
"""The last offset written to each partition, or why there is none."""


class ReadBatch(NamedTuple):
    records: Sequence[LogRecord]
    positions: Offsets
    """The next offset to read, of the partitions that moved."""
    at_end: frozenset[int] = frozenset()
    """The partitions that had nothing more to read."""


class TopicFacts(NamedTuple):
    cluster_id: str
    partitions: int


class LogReader(Protocol):
    """Reads from given positions on. Used by one thread; methods block, and raise `ClientError`."""

    def end_offsets(self) -> Offsets:
        """The offset after the last record, of every partition."""
        ...

    def read(self, timeout_s: float) -> ReadBatch | None:
        """The next records, or `None` if none arrived in time."""
        ...

    def close(self) -> None: ...


class LogWriter(Protocol):
    """Writes with `acks=all` and without duplicates. Used by one thread."""

    @property
    def is_usable(self) -> bool:
        """Whether further writes can succeed; false after being fenced and after fatal errors."""
        ...

    def write(self, groups: Sequence[Sequence[LogWrite]], is_over: Callable[[], bool]) -> Sequence[WriteOutcome]:
        """Write, wait, and return the outcome of each group; gives up when `is_over()`."""
        ...

    def serve(self) -> None:
        """Poll the client for log lines while there is nothing to write."""
        ...

    def close(self, timeout_s: float) -> None: ...


class LogTopic(Protocol):
    """The topic behind a log. Methods block, and raise `ClientError`."""

    @property
    def name(self) -> str: ...

    @property
    def servers(self) -> str: ...

    @property
    def is_exclusive(self) -> bool:
        """Whether opening a writer fences all writers that were opened before."""
        ...

    def prepare(self, deadline: float, is_stopping: Callable[[], bool]) -> TopicFacts:
        """Create the topic where it is missing; waits for brokers until `deadline` of the monotonic clock.

        Raises `StartupError` for an unsuitable topic, and where no broker answers in time.
        """
        ...

    def open_reader(self, positions: Offsets) -> LogReader: ...

    def open_writer(self) -> LogWriter: ...


class TopicLog:
    def __init__(
        self,
        topic: LogTopic,
        apply: Apply,
        *,
        timeout_ms: int,
        marker: bytes | None = None,
        logger: logging.Logger,
    ) -> None:
        """`timeout_ms` bounds one `append`. `marker` is the key of the no-op records of `catch_up`."""
        self._topic = topic
        self._apply = apply
        self._timeout_s = timeout_ms / 1000
        self._marker = marker
        self._logger = logger
        self.is_ready = False
        """Whether all records that were in the topic at the start have been applied."""
        self.cluster_id = ""
        """Of the cluster that holds the topic; known after `start`."""
        self._applied: dict[int, int] = {}
        self._unread: set[int] = set()
        self._waiting: list[tuple[Offsets, asyncio.Future[None]]] = []
        self._holders = 0
        self._held_back: list[ReadBatch] = []
        self._room = threading.Semaphore(MAX_UNAPPLIED_BATCHES)
        self._end_questions: queue.SimpleQueue[asyncio.Future[Offsets]] = queue.SimpleQueue()
        self._is_end_known = False
        self._times_end_forgotten = 0
        self._is_stopping = threading.Event()
        self._reader_thread: threading.Thread | None = None
        self._unforeseen = ""
        """The last error of reading that was logged with its traceback: once is enough."""
        self._writing: _WritingThread | None = None
        self._becoming_writer = asyncio.Lock()

    # Start and stop

    async def start(self, timeout_s: float) -> None:
        """Create the topic if needed and apply all its records; waits for brokers, and logs that it does.

        Raises `StartupError` where the topic is unsuitable, or no broker answers in time, and `TopicLogTimeoutError`
        where reading does not end in time.
        """
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        deadline = time.monotonic() + timeout_s
        async with log_while_waiting(self._topic.servers, deadline, self._logger):
            prepare = partial(self._topic.prepare, deadline, self._is_stopping.is_set)
            facts = await in_daemon_thread(prepare, name=f"{self._topic.name}-prepare")
            self.cluster_id = facts.cluster_id
            self._unread = set(range(facts.partitions))
            self._applied = dict.fromkeys(range(facts.partitions), -1)
            if not self._topic.is_exclusive:
                self._writing = _WritingThread(self._topic, self._topic.open_writer(), self._loop, self._logger)
            self._reader_thread = threading.Thread(target=self._read, name=f"{self._topic.name}-reader", daemon=True)
            self._reader_thread.start()
            try:
                await asyncio.wait_for(asyncio.shield(self._ready), max(1.0, deadline - time.monotonic()))
            except TimeoutError:
                raise TopicLogTimeoutError(
                    f"the topic {self._topic.name} could not be read within {timeout_s:g} s"
                ) from None

    async def stop(self, timeout_s: float) -> None:
        """Stop both threads; pending requests to brokers are given up after `timeout_s`."""
        self._is_stopping.set()
        deadline = time.monotonic() + timeout_s
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing.stop(timeout_s)
        if self._reader_thread is not None:
            await join_thread(self._reader_thread, deadline - time.monotonic())
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            _fail(future, TopicLogError("the log was stopped; the write may or may not have succeeded"))

    # Reading

    @property
    def applied_offset(self) -> int:
        """The last offset applied of the first partition, -1 before any."""
        return self._applied.get(0, -1)

    @contextmanager
    def hold_back(self) -> Iterator[None]:
        """Apply nothing while the block runs, so that another thread can read the state."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                held_back, self._held_back = self._held_back, []
                for batch in held_back:
                    self._arrive(batch)

    async def wait_until_applied(self, offset: int, partition: int = 0) -> None:
        """Return when a record has been applied; raises `TopicLogTimeoutError`."""
        async with self._in_time("What was written could not be read back in time; it may or may not hold"):
            await self._until_applied({partition: offset})

    async def read_to_end(self) -> None:
        """Return when all that is in the topic now has been applied; raises `TopicLogError`."""
        question: asyncio.Future[Offsets] = self._loop.create_future()
        self._end_questions.put(question)
        async with self._in_time(f"The end of the topic {self._topic.name} could not be read in time"):
            ends = await question
            await self._until_applied({partition: end - 1 for partition, end in ends.items()})

    # Writing

    @property
    def is_writer(self) -> bool:
        """Whether `append` may be called: always, unless the topic is exclusive."""
        return self._writing is not None

    async def become_writer(self) -> None:
        """Fence the previous writers, if the topic is exclusive, and apply all they have written.

        Raises `ClientError` where that fails; then `append` is rejected until this succeeds.
        """
        async with self._becoming_writer:
            if self._topic.is_exclusive:
                old, self._writing = self._writing, None
                if old is not None:
                    await old.stop(CLOSE_WRITER_S)
                writer = await in_daemon_thread(self._topic.open_writer, name=f"{self._topic.name}-open-writer")
                self._writing = _WritingThread(self._topic, writer, self._loop, self._logger)
            self.forget_end()
            await self.catch_up()

    def forget_end(self) -> None:
        """Another instance may have written: the next `catch_up` has to check."""
        self._is_end_known = False
        self._times_end_forgotten += 1

    async def catch_up(self) -> None:
        """Return when all records in the topic have been applied. Free while only this log writes.

        With a `marker`, a no-op record is written and read back, which also proves that writing works.
        """
        if self._is_end_known:
            return
        times_forgotten = self._times_end_forgotten
        if self._marker is not None:
            await self.append([LogWrite(self._marker, None)])
        else:
            await self.read_to_end()
        self._is_end_known = times_forgotten == self._times_end_forgotten

    async def append(self, writes: Sequence[LogWrite]) -> Offsets:
        """Write in order and wait until all was applied here; returns the last offset of each partition.

        In an exclusive topic the writes become visible together or not at all. Raises `RecordTooLargeError`,
        `FencedError` where another writer has taken over, and `TopicLogError` (`TopicLogTimeoutError` among them),
        after which the write may or may not have been stored.
        """
        if not writes:
            return {}
        writing = self._writing
        if writing is None:
            raise FencedError(
                f"this instance is not the writer of the topic {self._topic.name}: it must take over first"
            )
        pending = _PendingWrite(writes, self._loop.create_future())
        try:
            async with self._in_time(f"The topic {self._topic.name} could not be written in time"):
                writing.submit(pending)
                offsets = await pending.outcome
                await self._until_applied(offsets)
        except BaseException as error:
            pending.is_abandoned = True
            if not isinstance(error, RecordTooLargeError):
                self.forget_end()
            if isinstance(error, FencedError) and self._writing is writing:
                self._writing = None
                writing.ask_to_stop()
            raise
        return offsets

    # On the event loop

    def _in_time(self, message: str) -> _InTime:
        return _InTime(self._timeout_s + GRACE_S, message)

    async def _until_applied(self, offsets: Offsets) -> None:
        if self._is_applied(offsets):
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((offsets, future))
        await future

    def _is_applied(self, offsets: Offsets) -> bool:
        return all(self._applied.get(partition, -1) >= offset for partition, offset in offsets.items())

    def _arrive(self, batch: ReadBatch) -> None:
        if self._holders:
            self._held_back.append(batch)
            return
        for record in batch.records:
            self._apply_record(record)
        for partition, position in batch.positions.items():
            self._applied[partition] = position - 1
        self._room.release()
        still_waiting = []
        for offsets, future in self._waiting:
            if future.done():
                continue
            if self._is_applied(offsets):
                future.set_result(None)
            else:
                still_waiting.append((offsets, future))
        self._waiting = still_waiting
        self._unread -= batch.at_end
        if not self._unread and not self.is_ready:
            self.is_ready = True
            if not self._ready.done():
                self._ready.set_result(None)

    def _apply_record(self, record: LogRecord) -> None:
        try:
            self._apply(record)
        except Exception:
            self._logger.exception(
                "record %d of %s-%d could not be applied and is skipped",
                record.offset,
                self._topic.name,
                record.partition,
            )

    # In the reading thread

    def _read(self) -> None:
        """Read until stopped; after any failure a new reader continues from the last position."""
        positions = dict.fromkeys(self._applied, 0)
        outage = Outage(f"topic {self._topic.name}")
        while not self._is_stopping.is_set():
            reader: LogReader | None = None
            try:
                reader = self._topic.open_reader(positions)
                self._follow(reader, positions, outage)
            except Exception as error:
                self._log_read_failure(error, outage)
                self._is_stopping.wait(RETRY_S)
            finally:
                if reader is not None:
                    reader.close()

    def _follow(self, reader: LogReader, positions: dict[int, int], outage: Outage) -> None:
        ends = {} if self.is_ready else self._first_ends(reader)
        self._hand_over(ReadBatch((), {}, _partitions_at_end(ends, positions)))
        while not self._is_stopping.is_set():
            self._answer_end_questions(reader)
            batch = reader.read(POLL_S)
            if batch is None:
                continue
            line = outage.recovery_line(time.monotonic())
            if line is not None:
                self._logger.warning("%s", line)
            positions.update(batch.positions)
            self._hand_over(batch._replace(at_end=batch.at_end | _partitions_at_end(ends, positions)))

    def _first_ends(self, reader: LogReader) -> Offsets:
        """The current end offsets, so that the last record is recognized without waiting for an empty fetch."""
        try:
            return reader.end_offsets()
        except ClientError:
            return {}  # the reader also reports the end by itself, only later

    def _answer_end_questions(self, reader: LogReader) -> None:
        questions = []
        while not self._end_questions.empty():
            questions.append(self._end_questions.get())
        if not questions:
            return
        try:
            ends = reader.end_offsets()
        except ClientError as error:
            failure = TopicLogError(f"The end of the topic {self._topic.name} is not known: {error}")
            for question in questions:
                _call_on(self._loop, partial(_fail, question, failure))
            return
        for question in questions:
            _call_on(self._loop, partial(_settle, question, ends))

    def _hand_over(self, batch: ReadBatch) -> None:
        while not self._room.acquire(timeout=POLL_S):
            if self._is_stopping.is_set():
                return
        _call_on(self._loop, partial(self._arrive, batch))

    def _log_read_failure(self, error: Exception, outage: Outage) -> None:
        if isinstance(error, UnreachableError) or self._is_stopping.is_set():
            self._logger.debug("topic %s cannot be read: %s", self._topic.name, error)
            return  # the connection log reports unreachable brokers
        if not isinstance(error, ClientError) and repr(error) != self._unforeseen:
            self._unforeseen = repr(error)
            self._logger.error("reading the topic %s failed", self._topic.name, exc_info=error)
        line = outage.failure_line(str(error), time.monotonic())
        if line is not None:
            self._logger.warning("%s", line)


class _InTime:
    """`asyncio.timeout` that raises a `TopicLogTimeoutError`."""

    def __init__(self, timeout_s: float, message: str) -> None:
        self._timeout = asyncio.timeout(timeout_s)
        self._message = message

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._timeout.__aexit__(*error)
        except TimeoutError:
            raise TopicLogTimeoutError(self._message) from None


class _PendingWrite:
    __slots__ = ("is_abandoned", "outcome", "writes")

    def __init__(self, writes: Sequence[LogWrite], outcome: asyncio.Future[Offsets]) -> None:
        self.writes = writes
        self.outcome = outcome
        self.is_abandoned = False
        """The caller no longer waits: do not send it if it was not sent yet."""


class _WritingThread:
    """Writes what is submitted. Everything submitted during a write is batched into the next one."""

    def __init__(
        self, topic: LogTopic, writer: LogWriter, loop: asyncio.AbstractEventLoop, logger: logging.Logger
    ) -> None:
        self._topic = topic
        self._loop = loop
        self._logger = logger
        self._writer = writer
        self._pending: queue.SimpleQueue[_PendingWrite | None] = queue.SimpleQueue()
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{topic.name}-writer", daemon=True)
        self._thread.start()

    def submit(self, pending: _PendingWrite) -> None:
        if self._pending.qsize() >= MAX_WAITING_WRITES:
            raise TopicLogError(
                f"{MAX_WAITING_WRITES} writes to the topic {self._topic.name} are already waiting; try again later"
            )
        self._pending.put(pending)

    def ask_to_stop(self) -> None:
        self._is_stopping.set()
        self._pending.put(None)

    async def stop(self, timeout_s: float) -> None:
        self.ask_to_stop()
        await join_thread(self._thread, timeout_s)

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            pending = self._next()
            try:
                if pending:
                    self._write(pending)
                else:
                    self._writer.serve()
            except Exception as error:
                if not isinstance(error, ClientError):
                    self._logger.error("writing the topic %s failed", self._topic.name, exc_info=error)
                failure = error if isinstance(error, ClientError) else TopicLogError(f"Writing failed: {error}")
                self._settle_all(pending, [failure] * len(pending))
        self._settle_all(self._next(wait_s=0), None)
        self._writer.close(CLOSE_WRITER_S)
        del self._writer  # an error's traceback may keep this object alive, but the client must end now

    def _next(self, wait_s: float = POLL_S) -> list[_PendingWrite]:
        found: list[_PendingWrite | None] = []
        try:
            found.append(self._pending.get(timeout=wait_s) if wait_s else self._pending.get_nowait())
            while True:
                found.append(self._pending.get_nowait())
        except queue.Empty:
            return [one for one in found if one is not None and not one.is_abandoned]

    def _write(self, pending: Sequence[_PendingWrite]) -> None:
        if not self._writer.is_usable and not self._topic.is_exclusive:
            self._writer.close(0)
            self._writer = self._topic.open_writer()
        if not self._writer.is_usable:
            self._settle_all(
                pending,
                [FencedError("this writer is no longer valid: another one may have taken over; take over again")]
                * len(pending),
            )
            return
        self._settle_all(pending, self._writer.write([one.writes for one in pending], self._is_stopping.is_set))

    def _settle_all(self, pending: Sequence[_PendingWrite], outcomes: Sequence[WriteOutcome] | None) -> None:
        for index, one in enumerate(pending):
            outcome = outcomes[index] if outcomes is not None else TopicLogError("the log was stopped")
            if isinstance(outcome, ClientError):
                _call_on(self._loop, partial(_fail, one.outcome, outcome))
            else:
                _call_on(self._loop, partial(_settle, one.outcome, outcome))


def _partitions_at_end(ends: Offsets, positions: Offsets) -> frozenset[int]:
    return frozenset(partition for partition, end in ends.items() if positions[partition] >= end)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: ClientError) -> None:
    if not future.done():
        future.set_exception(error)


def _call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # the loop is closed
