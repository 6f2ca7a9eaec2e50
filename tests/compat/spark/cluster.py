"""The broker that Spark reads and writes: moldau or Apache Kafka, one node, with a second listener behind a tap.

Both get the same settings and the same ports all their life, so that a query survives `restart`. Start at `running`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.compat.spark.tap import Tap
from tests.free_ports import free_port
from tests.oracle.apache_kafka import ApacheKafka

from moldau.testing import Broker

__all__ = ["Cluster", "running"]

SETTINGS = {
    "num.partitions": "2",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "1000",
    "delete.topic.enable": "true",
}


@dataclass(frozen=True)
class Cluster:
    """A started broker, as the tests need to know it."""

    kind: str
    bootstrap: str
    tap: Tap
    """Another way in, which tells what was asked for."""
    stop: Callable[[], None]
    start: Callable[[], None]

    def restart(self) -> None:
        """Shut down in good order and come back with the same data on the same ports."""
        self.stop()
        self.start()


@contextmanager
def running(kind: str) -> Iterator[Cluster]:
    """Start a broker of this kind; it and its data are gone afterwards."""
    port, tapped_port = free_port(), free_port()
    with Tap(tapped_port) as tap:
        if kind == "kafka":
            with ApacheKafka(properties=SETTINGS | _listeners(port, tapped_port, tap, controller=free_port())) as kafka:
                yield Cluster(kind, f"127.0.0.1:{port}", tap, kafka.stop, kafka.start)
        else:
            with Broker(SETTINGS | _listeners(port, tapped_port, tap)) as broker:
                yield Cluster(kind, f"127.0.0.1:{port}", tap, broker.stop, broker.start)


def _listeners(port: int, tapped_port: int, tap: Tap, controller: int | None = None) -> dict[str, str]:
    """Settings for two ways in; Apache Kafka also needs one for its controller."""
    bound = f"PLAINTEXT://127.0.0.1:{port},TAPPED://127.0.0.1:{tapped_port}"
    settings = {
        "listeners": bound,
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},TAPPED://127.0.0.1:{tap.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TAPPED:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    if controller is not None:
        settings["listeners"] = f"{bound},CONTROLLER://127.0.0.1:{controller}"
        settings["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
    return settings
