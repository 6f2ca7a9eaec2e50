"""Metrics of requests by API, connections, waiting operations and fetch sessions."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import gauge, meter, plain_counter
from moldau.broker.metrics import Distribution, Family, Kind, Sample
from moldau.broker.stats import RequestStats
from moldau.core.errors import ErrorCode
from moldau.net.server import Server
from moldau.protocol.api import ApiKey

__all__ = ["families"]

REQUESTS = "kafka.network:RequestMetrics"
SOCKET_SERVER = "kafka.network:SocketServer"
PURGATORY = "kafka.server:DelayedOperationPurgatory"
LISTENER = "kafka.server:socket-server-metrics"


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    yield from _requests(broker)
    yield from _waiting(broker)
    if parts.server is not None:
        yield from _connections(parts.server)


def _stats_by_name(broker: Broker) -> list[tuple[str, RequestStats]]:
    """Request counts by name; fetches count as Fetch and as FetchConsumer, as in Kafka; there are no followers yet."""
    found = [(ApiKey(key).display_name, stats) for key, stats in sorted(broker.stats.requests.items())]
    fetches = broker.stats.requests.get(ApiKey.FETCH)
    return found if fetches is None else [*found, ("FetchConsumer", fetches)]


def _requests(broker: Broker) -> Iterator[Family]:
    named = _stats_by_name(broker)
    yield Family(
        REQUESTS,
        "RequestsPerSec",
        Kind.METER,
        "Requests by API and version.",
        [
            Sample((("request", name), ("version", str(version))), count)
            for name, stats in named
            for version, count in sorted(stats.by_version.items())
        ],
    )
    yield Family(
        REQUESTS, "ErrorsPerSec", Kind.METER, "Errors sent by API, NONE for requests without any.", _errors(named)
    )
    for attribute, metric, text in (
        ("recent_total_ms", "TotalTimeMs", "From the whole request received to its reply handed to the socket."),
        ("recent_request_bytes", "RequestBytes", "Size of requests."),
    ):
        samples = [(name, stats, tuple(getattr(stats, attribute))) for name, stats in named]
        yield Family(
            REQUESTS,
            metric,
            Kind.HISTOGRAM,
            text,
            [
                Sample((("request", name),), Distribution(stats.count, recent))
                for name, stats, recent in samples
                if recent
            ],
        )


def _errors(named: list[tuple[str, RequestStats]]) -> list[Sample]:
    samples = []
    for name, stats in named:
        failed = sum(stats.errors.values())
        samples.append(Sample((("request", name), ("error", "NONE")), max(0, stats.count - failed)))
        samples += [
            Sample((("request", name), ("error", _error_name(code))), count)
            for code, count in sorted(stats.errors.items())
            if code
        ]
    return samples


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _waiting(broker: Broker) -> Iterator[Family]:
    data_plane = broker.data_plane
    parked, group_commit, sessions = data_plane.parked, data_plane.group_commit, data_plane.sessions
    sizes = dict.fromkeys(("Produce", "Fetch", "DeleteRecords", "ElectLeader", "Rebalance", "Heartbeat"), 0)
    sizes |= {"Produce": group_commit.waiting, "Fetch": parked.count}
    samples = [Sample((("delayedOperation", name),), size) for name, size in sizes.items()]
    yield Family(PURGATORY, "PurgatorySize", Kind.GAUGE, "Operations that wait.", samples)
    yield Family(PURGATORY, "NumDelayedOperations", Kind.GAUGE, "Operations that wait.", samples)
    yield Family(
        "kafka.server:DelayedFetchMetrics",
        "ExpiresPerSec",
        Kind.METER,
        "Fetches whose time was up before there was enough to send.",
        [Sample((("fetcherType", "consumer"),), parked.expired), Sample((("fetcherType", "follower"),), 0)],
    )
    yield meter("kafka.server:DelayedProduceMetrics", "ExpiresPerSec", 0, "Produces whose replicas took too long.")
    cache = "kafka.server:FetchSessionCache"
    yield gauge(cache, "NumIncrementalFetchSessions", len(sessions), "Fetch sessions open.")
    yield gauge(cache, "NumIncrementalFetchPartitionsCached", sessions.partitions, "Partitions in them.")
    yield meter(cache, "IncrementalFetchSessionEvictionsPerSec", sessions.evictions, "Sessions that made room.")
    yield plain_counter("moldau_flushes_on_ack_total", group_commit.rounds, "Syncs that acknowledgements waited for.")
    yield plain_counter("moldau_cold_reads_total", data_plane.cold_reads.count, "Reads that waited for the disk.")
    yield plain_counter("moldau_slow_appends_total", data_plane.slow_appends.count, "Appends that the kernel held up.")


def _connections(server: Server) -> Iterator[Family]:
    yield gauge("kafka.network:RequestChannel", "RequestQueueSize", 0, "Requests wait in the kernel, not here.")
    yield gauge("kafka.network:RequestChannel", "ResponseQueueSize", 0, "Replies wait at their connection.")
    yield gauge(
        SOCKET_SERVER, "ExpiredConnectionsKilledCount", server.expired_connections, "Connections closed for silence."
    )
    yield Family(
        LISTENER,
        "connection-count",
        Kind.ATTRIBUTE,
        "Connections open.",
        [
            Sample((("listener", name), ("networkProcessor", "0")), count)
            for name, count in sorted(server.connections_by_listener.items())
        ],
    )
    for name, value, text in (
        ("connection-creation-total", server.accepted_connections, "Connections accepted."),
        ("connection-close-total", server.closed_connections, "Connections closed."),
        ("incoming-byte-total", server.received_bytes, "Bytes received."),
        ("outgoing-byte-total", server.sent_bytes, "Bytes sent."),
    ):
        yield Family(LISTENER, name, Kind.ATTRIBUTE, text, [Sample((("networkProcessor", "0"),), value)])
    yield plain_counter(
        "moldau_refused_connections_total",
        server.refused_connections,
        "Connections over the limit of their address, or for which there was no file descriptor.",
    )
    yield plain_counter(
        "moldau_shed_connections_total", server.shed_connections, "Connections closed because file descriptors ran out."
    )
