"""The registered broker of a cluster: checks registrations and heartbeats, without I/O or a clock.

A registration point (`server.registration_point`) has a `Registrations`. A `RegisteredBroker` and the cluster id must
survive its restart: `judge` returns them, the caller saves them, and only then `accept` makes them effective. Sessions
are not saved: after a restart, the registered broker has a full session timeout to send a heartbeat.

A cluster has one broker until partitions are replicated. Its metadata and its records are in that broker's log
directories, so a broker with another id is refused even while the first is stopped: it would be a different cluster
with the same cluster id. Start at `Registrations.judge`.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.controller.brokers import BrokerRegistration
from moldau.core.errors import ErrorCode

__all__ = ["HeartbeatReply", "RegisteredBroker", "Registrations"]


class RegisteredBroker(NamedTuple):
    broker: BrokerRegistration
    broker_epoch: int
    cluster_id: str
    came_from: str
    """The address the registration came from: used for a broker that advertises no host."""


class HeartbeatReply(NamedTuple):
    error: ErrorCode
    is_fenced: bool = True
    should_shut_down: bool = False


class Registrations:
    def __init__(
        self, cluster_id: str, registered: RegisteredBroker | None, *, session_timeout_ms: int, now_ms: int
    ) -> None:
        self.cluster_id = cluster_id
        self.registered = registered
        self.is_fenced = True
        self._session_timeout_ms = session_timeout_ms
        self._heard_ms: int | None = None if registered is None else now_ms

    def judge(
        self, cluster_id: str, broker: BrokerRegistration, *, came_from: str, now_ms: int
    ) -> RegisteredBroker | ErrorCode:
        """Return what to save and `accept` for this registration, or the error that rejects it. Changes nothing."""
        known = self.registered
        if not broker.log_dirs or len(set(broker.log_dirs)) != len(broker.log_dirs):
            return ErrorCode.INVALID_REGISTRATION
        if known is None:
            # This point's own cluster id is still unused, so the first broker's cluster id is taken instead.
            return RegisteredBroker(broker, 0, cluster_id, came_from)
        if cluster_id != self.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if broker.node_id != known.broker.node_id:
            return ErrorCode.INVALID_REGISTRATION
        if self.has_session(now_ms) and not _is_successor(known.broker, broker):
            return ErrorCode.DUPLICATE_BROKER_REGISTRATION
        if broker == known.broker and came_from == known.came_from:
            return known
        return RegisteredBroker(broker, known.broker_epoch + 1, cluster_id, came_from)

    def accept(self, registered: RegisteredBroker, now_ms: int) -> None:
        """Make a saved registration effective. A new process is fenced until it asks to be unfenced."""
        if self.registered is None or self.registered.broker.incarnation_id != registered.broker.incarnation_id:
            self.is_fenced = True
        self.cluster_id = registered.cluster_id
        self.registered = registered
        self._heard_ms = now_ms

    def heartbeat(
        self, node_id: int, broker_epoch: int, *, want_fence: bool, want_shut_down: bool, now_ms: int
    ) -> HeartbeatReply:
        known = self.registered
        if known is None or (node_id, broker_epoch) != (known.broker.node_id, known.broker_epoch):
            return HeartbeatReply(ErrorCode.STALE_BROKER_EPOCH)
        self.is_fenced = want_fence or want_shut_down
        self._heard_ms = None if want_shut_down else now_ms
        return HeartbeatReply(ErrorCode.NONE, self.is_fenced, want_shut_down)

    def has_session(self, now_ms: int) -> bool:
        """Whether the broker has sent a heartbeat within its session and has not shut down."""
        return self._heard_ms is not None and now_ms - self._heard_ms <= self._session_timeout_ms

    def is_alive(self, now_ms: int) -> bool:
        """Whether clients may be sent to the broker."""
        return not self.is_fenced and self.has_session(now_ms)


def _is_successor(known: BrokerRegistration, broker: BrokerRegistration) -> bool:
    """Whether this is the same process, or one that took over its log directories.

    A log directory is locked by the process that uses it, so a new process in it proves that the old one has ended.
    """
    return broker.incarnation_id == known.incarnation_id or bool(set(broker.log_dirs) & set(known.log_dirs))
