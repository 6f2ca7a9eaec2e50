"""The properties of a task's clients: defaults, then the worker's, then the connector's overrides. Pure.

Start at `ClientSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.connection import normalize_servers

__all__ = ["ClientSettings"]

_SECURITY = ("ssl.", "sasl.", "security.")


class ClientSettings:
    """`worker` and `connector` are settings with all secrets resolved."""

    def __init__(self, worker: Mapping[str, str], connector: Mapping[str, str]) -> None:
        self._worker = worker
        self._connector = connector
        self.servers = normalize_servers(worker.get("bootstrap.servers", "localhost:9092"))

    def producer(self, client_id: str) -> dict[str, str]:
        """A producer that loses nothing and keeps the order."""
        defaults = {
            "client.id": client_id,
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": "5",
            "batch.size": "1000000",
            "delivery.timeout.ms": "120000",
            "partitioner": "murmur2_random",
        }
        return {**defaults, **self._of("producer")}

    def consumer(self, group_id: str, client_id: str) -> dict[str, str]:
        """A consumer that starts at the beginning and commits only when told."""
        defaults = {
            "client.id": client_id,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.max.wait.ms": "100",
            "session.timeout.ms": self._worker.get("session.timeout.ms", "10000"),
        }
        return {**defaults, **self._of("consumer"), "enable.auto.commit": "false"}

    def admin(self, client_id: str) -> dict[str, str]:
        return {"client.id": client_id, **self._of("admin")}

    def _of(self, kind: str) -> dict[str, str]:
        security = {name: text for name, text in self._worker.items() if name.startswith(_SECURITY)}
        return {
            **security,
            **_below(f"{kind}.", self._worker),
            **_below(f"{kind}.override.", self._connector),
            "bootstrap.servers": _below(f"{kind}.override.", self._connector).get("bootstrap.servers", self.servers),
        }


def _below(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}
