"""Programs that use the client toolkit, for tests that take their broker away: `away_program.py <name> <servers>`.

Each prints `ready` when it is at the point where it needs the broker, and `ended` when it ends in good order.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator

from moldau.client import (
    Consumer,
    ExactlyOnce,
    ListenerApp,
    Producer,
    ProducerRecord,
    Received,
    Record,
    TopicPartition,
)

TOPIC = "orders"


def ready() -> None:
    print("ready", flush=True)


def with_block(servers: str) -> None:
    with Producer(servers) as producer:
        for _ in range(17):
            producer.send(TOPIC, "v")
        ready()


def flush(servers: str) -> None:
    producer = Producer(servers)
    for _ in range(17):
        producer.send(TOPIC, "v")
    ready()
    producer.flush()


def partitioner(servers: str) -> None:
    with Producer(servers, partitioner=lambda *_: 0) as producer:
        ready()
        producer.send(TOPIC, "v")


def send_on(servers: str) -> None:
    """Sends for ever, and says so once the broker has the first record."""
    with Producer(servers) as producer:
        producer.send_and_wait(TOPIC, "v")
        ready()
        while True:
            producer.send(TOPIC, "v")
            producer.poll(0.05)


def transactions(servers: str) -> None:
    with Producer(servers, {"transactional.id": "away"}) as producer:
        ready()
        producer.transactions.start()


def commit(servers: str) -> None:
    """Commits transactions for ever."""
    with Producer(servers, {"transactional.id": "committing"}) as producer:
        producer.transactions.start()
        is_first = True
        while True:
            with producer.transactions.begin():
                producer.send(TOPIC, "v")
            if is_first:
                ready()
                is_first = False


def consumer(servers: str) -> None:
    with Consumer(servers, {"auto.offset.reset": "earliest"}, group="away") as reader:
        reader.subscribe([TOPIC])
        for _ in reader:
            ready()


def positions(servers: str) -> None:
    with Consumer(servers, group="asking") as reader:
        ready()
        reader.committed([TopicPartition(TOPIC, 0)])


def commits(servers: str) -> None:
    """Commits each record and waits for that."""
    properties = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    with Consumer(servers, properties, group="committing") as reader:
        reader.subscribe([TOPIC])
        for record in reader:
            ready()
            while True:
                reader.commit_record(record)


def listeners(servers: str) -> None:
    app = ListenerApp(servers)

    @app.listener(TOPIC, group="listening", concurrency=3)
    def listen(record: Received[str, str]) -> None:
        ready()
        raise ValueError("sent on to a retry topic")

    app.run()


def acknowledging(servers: str) -> None:
    app = ListenerApp(servers)

    @app.listener(TOPIC, group="acknowledging", commits="manual", retry=None)
    def listen(record: Received[str, str]) -> None:
        record.acknowledge()
        ready()

    app.run()


def exactly_once(servers: str) -> None:
    def copy(record: Record[str, str]) -> Iterator[ProducerRecord[str, str]]:
        ready()
        yield ProducerRecord(topic="copies", key=record.key, value=record.value)

    with ExactlyOnce(copy, [TOPIC], group="copying", transactional_id="copying-1", servers=servers) as copying:
        copying.run()


PROGRAMS: dict[str, Callable[[str], None]] = {
    "acknowledging": acknowledging,
    "commit": commit,
    "commits": commits,
    "consumer": consumer,
    "exactly-once": exactly_once,
    "flush": flush,
    "listeners": listeners,
    "partitioner": partitioner,
    "positions": positions,
    "send-on": send_on,
    "transactions": transactions,
    "with-block": with_block,
}


def main() -> int:
    logging.basicConfig(format="%(levelname)s %(message)s")
    name, servers = sys.argv[1:]
    try:
        PROGRAMS[name](servers)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130
    print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
