"""What the programs in `cluster_program` read, and exactly what they must write. Start at `Shop`."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from moldau.client.admin import Admin
from moldau.core.ids import TopicPartition as Partition

__all__ = ["Shop"]

PARTITIONS = 2
LATEST = -1
CUSTOMERS = 6
RATES = {"books": 7, "music": 19}
PATIENCE_S = 180
Values = Mapping[str, Sequence[str]]
"""All values of each key, in their order."""


@dataclass
class Shop:
    """Topics of one broker; orders are sent in rounds."""

    bootstrap: str
    orders: list[tuple[str, str, int]] = field(default_factory=list)
    """Customer, order, and the minute it was made in."""
    is_served: Callable[[], bool] = lambda: True
    """Whether results may still come; nothing is waited for otherwise."""

    def __post_init__(self) -> None:
        self._admin = Admin(self.bootstrap)
        self._chance = random.Random(1)
        # Days ago: brokers refuse records that are more than an hour ahead of the clock, and forget them after a week.
        self._base_ms = int(time.time() - 5 * 86_400) // 60 * 60_000
        for topic in ("orders", "customers", "priced", "per-minute", "addressed", "totals"):
            self._admin.create_topic(topic, partitions=PARTITIONS)
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0})
        for number in range(CUSTOMERS):
            at_ms = self._base_ms - 60_000
            self._producer.produce("customers", f"Name {number}", f"c{number}", timestamp=at_ms, on_delivery=_stored)
        assert self._producer.flush(PATIENCE_S) == 0

    def send_orders(self, count: int) -> None:
        for _ in range(count):
            number = len(self.orders)
            kind = self._chance.choice(("books", "music", "free"))
            customer, order, minute = f"c{self._chance.randrange(CUSTOMERS)}", f"{kind}:{number}", number // 50
            self.orders.append((customer, order, minute))
            at_ms = self._base_ms + minute * 60_000 + number % 50
            self._producer.produce("orders", order, customer, timestamp=at_ms, on_delivery=_stored)
        assert self._producer.flush(PATIENCE_S) == 0

    @contextmanager
    def orders_coming_in(self, at_once: int, *, pause_s: float) -> Iterator[None]:
        """For the length of a block, from another thread; the first ones are there when it begins."""
        stop, sent = threading.Event(), threading.Event()

        def send() -> None:
            while not stop.wait(pause_s):
                self.send_orders(at_once)
                sent.set()

        thread = threading.Thread(target=send, name="orders")
        thread.start()
        try:
            assert sent.wait(PATIENCE_S)
            yield
        finally:
            stop.set()
            thread.join()

    def expected(self, application: str) -> Values:
        return _grouped(getattr(self, "_" + application.replace("-", "_"))())

    def check(self, application: str) -> None:
        """Wait until the application has written all it must; it must have written nothing else."""
        wanted = self.expected(application)
        count = sum(map(len, wanted.values()))
        found = self._read(application, count)
        assert found == wanted, _difference(wanted, found)

    def check_totals(self) -> None:
        """With caching the last value counts; those before it depend on how orders fell into batches."""
        wanted = Counter(customer for customer, _, _ in self.orders)
        deadline = time.monotonic() + PATIENCE_S
        found: Values = {}
        while {key: int(values[-1]) for key, values in found.items()} != wanted:
            assert self.is_served(), found
            assert time.monotonic() < deadline, (wanted, found)
            found = self._read("totals", 0)
        assert all([*map(int, values)] == sorted({*map(int, values)}) for values in found.values()), found

    def written(self, topic: str) -> int:
        """How many records there are, also of transactions that are not committed."""
        places = [Partition(topic, number) for number in range(PARTITIONS)]
        return sum(self._admin.list_offsets(dict.fromkeys(places, LATEST)).values())

    def _priced(self) -> list[tuple[str, str]]:
        sold = [(customer, *order.split(":")) for customer, order, _ in self.orders if not order.startswith("free")]
        return [(customer, f"{kind}:{int(cents) * (100 + RATES[kind]) // 100}") for customer, kind, cents in sold]

    def _per_minute(self) -> list[tuple[str, str]]:
        counts: Counter[str] = Counter()
        found = []
        for customer, _, minute in self.orders:
            key = f"{customer}@{self._base_ms // 60_000 + minute}"
            counts[key] += 1
            found.append((key, str(counts[key])))
        return found

    def _addressed(self) -> list[tuple[str, str]]:
        return [(customer, f"{order} for Name {customer[1:]}") for customer, order, _ in self.orders]

    def _read(self, topic: str, count: int) -> Values:
        """At least so many committed records, and whatever else is there."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        text: Callable[[bytes], str] = _number if topic in ("per-minute", "totals") else bytes.decode
        found: list[tuple[str, str]] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < deadline and self.is_served():
            found += _pairs(consumer.consume(500, 0.1), text)
        found += _pairs(consumer.consume(10_000, 1.0), text)
        consumer.close()
        return _grouped(found)


def _pairs(messages: Sequence[Message], text: Callable[[bytes], str]) -> list[tuple[str, str]]:
    return [(bytes(one.key() or b"").decode(), text(one.value() or b"")) for one in messages if one.error() is None]


def _number(data: bytes) -> str:
    return str(int.from_bytes(data, "big"))


def _grouped(pairs: Sequence[tuple[str, str]]) -> Values:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)


def _difference(wanted: Values, found: Values) -> str:
    keys = [key for key in {*wanted, *found} if wanted.get(key) != found.get(key)]
    return f"{len(keys)} keys differ, such as {keys[0]}: {wanted.get(keys[0])} became {found.get(keys[0])}"


def _stored(error: KafkaError | None, record: Message) -> None:
    assert error is None, error
