"""`ListenerApp`: runs functions that are called for every record of a topic.

It manages threads and consumers, commits, retries with backoff, dead letters, and an orderly stop on SIGTERM. Threads
are in `client.listeners.workers`, decisions about failed records in `client.listeners.retries`. Start at `ListenerApp`.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Literal, TypeVar

from moldau.client.admin import Admin
from moldau.client.connection import Report, log_report, rendered_properties
from moldau.client.errors import ClientError, UnreachableError, noted_on
from moldau.client.listeners.retries import RetryPolicy
from moldau.client.listeners.workers import Handler, Worker, WorkerPlan
from moldau.client.producer import Producer
from moldau.client.serialization import PartReader
from moldau.client.waiting import GivenUpError
from moldau.core.errors import ErrorCode, InvalidConfigError
from moldau.serdes.plain import BYTES
from moldau.serdes.serde import Deserializer

__all__ = ["ListenerApp", "ListenerError"]

K = TypeVar("K")
V = TypeVar("V")
Commits = Literal["automatic", "manual"]

DEFAULT_RETRY = RetryPolicy()
WAIT_SLICE_S = 0.2

logger = logging.getLogger("moldau.client")


class ListenerError(ClientError):
    """A listener without retries failed, or a consumer failed fatally; `__cause__` is the reason."""


@dataclass(frozen=True, slots=True)
class _Listener:
    plan: WorkerPlan
    concurrency: int


class ListenerApp:
    """Listeners that start and stop together.

        app = ListenerApp("localhost:9092")

        @app.listener("payments", group="billing", concurrency=3, value_deserializer=JSON)
        def bill(record):
            charge(record.key, record.value["amount"])

        app.run()

    servers: `host:port`, several with commas between; may be left out where `properties` has `bootstrap.servers`.
    properties: Java's client keys that all parts need, such as those for TLS and SASL.
    consumer_properties, producer_properties: Java's keys for the listeners' consumers, and for the producer that writes
        retries and dead letters. Consumers start at `auto.offset.reset=earliest` by default.
    shutdown_timeout_s: how long a stop waits for listeners that are still running.
    report: gets the level and text of the clients' own log lines; by default they go to the logger `moldau.client`.
    """

    def __init__(
        self,
        servers: str | None = None,
        properties: Mapping[str, object] | None = None,
        *,
        consumer_properties: Mapping[str, object] | None = None,
        producer_properties: Mapping[str, object] | None = None,
        shutdown_timeout_s: float = 30.0,
        report: Report = log_report,
    ) -> None:
        self._properties = rendered_properties(servers, properties)
        self._consumer_properties = dict(consumer_properties or {})
        self._producer_properties = dict(producer_properties or {})
        self._shutdown_timeout_s = shutdown_timeout_s
        self._report = report
        self._listeners: list[_Listener] = []
        self._workers: list[Worker] = []
        self._producer: Producer[bytes, bytes] | None = None
        self._stopping = threading.Event()
        self._is_signalled = False

    def listener(
        self,
        topics: str | Sequence[str],
        *,
        group: str,
        concurrency: int = 1,
        key_deserializer: Deserializer[K] | None = None,
        value_deserializer: Deserializer[V] | None = None,
        commits: Commits = "automatic",
        retry: RetryPolicy | None = DEFAULT_RETRY,
        properties: Mapping[str, object] | None = None,
    ) -> Callable[[Handler[K, V]], Handler[K, V]]:
        """Call the decorated function for every record of these topics.

        The function takes a `Received` record. It is not wrapped, so tests can call it directly.

        group: the consumer group that shares the topics; other programs of the same group share them too.
        concurrency: how many threads, each with a consumer of its own. More than the topics have partitions stay idle.
            Records of one partition are handled one after the other, in order; of several, at the same time.
        key_deserializer, value_deserializer: those of `Consumer`, with the same defaults.
        commits: `automatic` counts a record as done when the function returns; commits follow every
            `auto.commit.interval.ms` and at the end. With `manual` nothing is committed until the function, now or
            later, calls `record.acknowledge()`.
        retry: what happens when the function raises. By default the record is retried after 1, 2 and 4 seconds,
            without blocking the records after it, and then becomes a dead letter: see `RetryPolicy`. A retried record
            loses its order among the records of its key. With `None` the app ends instead, and `run` raises
            `ListenerError`; the record stays uncommitted.
        properties: Java consumer keys for this listener alone.

        Every record is handled at least once: after a crash some are handled again.
        """
        if concurrency < 1:
            raise InvalidConfigError(f"concurrency must be at least 1, not {concurrency}")
        if commits not in ("automatic", "manual"):
            raise InvalidConfigError(f"commits must be automatic or manual, not {commits!r}")
        names = (topics,) if isinstance(topics, str) else tuple(topics)

        def register(handler: Handler[K, V]) -> Handler[K, V]:
            settings = {**self._consumer_settings(), **(properties or {})}
            given = rendered_properties(None, settings)
            plan = WorkerPlan(
                handler=handler,
                name=getattr(handler, "__qualname__", repr(handler)),
                topics=names,
                group=group,
                key_reader=PartReader(key_deserializer, given, "key"),
                value_reader=PartReader(value_deserializer, given, "value"),
                is_manual=commits == "manual",
                retry=retry,
                properties=settings,
            )
            self._listeners.append(_Listener(plan, concurrency))
            return handler

        return register

    # Running

    def run(self) -> None:
        """Work until SIGINT, SIGTERM or `stop`; then finish the current records, commit, leave the groups and return.

        Raises `ListenerError` where a listener failed for good. A second signal kills the process.
        Outside the main thread, signals are not handled.

        Stopping waits for running listeners, `shutdown_timeout_s` at most, but only moments for a broker that does not
        answer: records that are not committed then are handled again after the next start.
        """
        with self._signals(), self:
            while not self._is_signalled and not self._stopping.wait(WAIT_SLICE_S):
                pass

    def start(self) -> None:
        """Start all listeners and return. Retry and dead-letter topics that are missing are created.

        Raises `UnreachableError` where no broker answers that for `default.api.timeout.ms`.
        """
        self._stopping.clear()
        self._is_signalled = False
        self._producer = Producer(
            None,
            {**self._properties, "client.id": "listener-dead-letters", **self._producer_properties},
            key_serializer=BYTES,
            value_serializer=BYTES,
            report=self._report,
        )
        try:
            self._create_topics()
        except GivenUpError:
            return
        workers: list[Worker] = []
        for listener in self._listeners:
            workers += [self._worker(listener.plan, index) for index in range(listener.concurrency)]
            if listener.plan.retry is not None and listener.plan.retry.attempts > 1:
                workers.append(self._worker(listener.plan.of_retries(), listener.concurrency))
        self._workers += workers
        for worker in workers:
            worker.start()

    def stop(self) -> None:
        """Begin to stop: `run` returns once the listeners are done. Any thread may call it."""
        self._stopping.set()

    def close(self) -> None:
        """Stop, wait for the listeners to finish their current records, commit, and leave the groups.

        Raises `ListenerError` for the first listener that failed for good, and `UnreachableError` when listeners are
        still running after `shutdown_timeout_s`; a further call waits for those again.
        """
        self._stopping.set()
        workers = self._workers
        for worker in workers:
            worker.stop()
        deadline = time.monotonic() + self._shutdown_timeout_s
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        if self._producer is not None:
            # Records that a broker has not acknowledged are not committed either: they are read again.
            self._producer.abandon()
        self._workers = [worker for worker in workers if worker.is_alive()]
        for worker in workers:
            if worker.failure is not None:
                raise ListenerError(f"Listener {worker.plan.name}: {worker.failure}") from worker.failure
        if self._workers:
            busy = ", ".join(worker.plan.name for worker in self._workers)
            raise UnreachableError(f"Listeners still running after {self._shutdown_timeout_s:g} s: {busy}")

    def wait_until_assigned(self, timeout_s: float = 30.0) -> None:
        """Wait until every thread has taken part in a rebalance and has its assignment.

        Raises `UnreachableError` when that takes longer.
        """
        deadline = time.monotonic() + timeout_s
        for worker in self._workers:
            if not worker.assigned.wait(max(0.0, deadline - time.monotonic())):
                raise UnreachableError(f"Group {worker.plan.group} gave no assignment within {timeout_s:g} s")

    def __enter__(self) -> ListenerApp:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with noted_on(error, "closing the listeners"):
            self.close()

    # Internals

    def _worker(self, plan: WorkerPlan, index: int) -> Worker:
        assert self._producer is not None
        return Worker(plan, index, self._producer, on_failure=self._stopping.set, report=self._report)

    def _consumer_settings(self) -> dict[str, object]:
        return {"auto.offset.reset": "earliest", **self._properties, **self._consumer_properties}

    def _create_topics(self) -> None:
        """Create retry and dead-letter topics with as many partitions as the original; a failure is only logged."""
        wanted = {
            name: topic
            for listener in self._listeners
            if listener.plan.retry is not None
            for topic in listener.plan.topics
            for name in (*listener.plan.retry.retry_topics(topic), listener.plan.retry.dead_letter_topic(topic))
            if name is not None
        }
        if not wanted:
            return
        admin = Admin(
            self._properties["bootstrap.servers"],
            self._properties,
            report=self._report,
            is_over=lambda: self._is_signalled or self._stopping.is_set(),
        )
        counts = admin.partition_counts()
        for name, topic in wanted.items():
            if name in counts:
                continue
            try:
                admin.create_topic(name, partitions=counts.get(topic))
            except GivenUpError:
                raise
            except ClientError as error:
                if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    logger.warning("Topic %s could not be created: %s", name, error)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        caught = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.getsignal(number) for number in caught}

        def note(number: int, frame: FrameType | None) -> None:
            # Only sets a flag: the interrupted code may hold any lock.
            self._is_signalled = True
            for caught_number, handler in before.items():
                signal.signal(caught_number, handler)

        for number in caught:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
