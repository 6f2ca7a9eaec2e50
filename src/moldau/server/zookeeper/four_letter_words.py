"""ZooKeeper's four-letter words: the plain-text commands that scripts and monitoring send to port 2181.

A word is the first four bytes of a connection; the answer is text, and the connection closes after it. This module
only formats text; the numbers are passed in as `PointStatus`. Start at `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["WORDS", "PointStatus", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """The status of a controller in ZooKeeper's place."""

    version: str
    client_port: int
    data_dir: str
    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int = 0
    received: int = 0
    sent: int = 0
    offset: int = 0
    """How far the metadata is committed."""
    mode: str = "standalone"
    brokers: tuple[str, ...] = ()
    """Live brokers, for display: `0 at localhost:9092`."""
    clients: tuple[str, ...] = ()


def answer(word: bytes, status: PointStatus) -> str | None:
    """The text for a word, or `None` if these four bytes are not a ZooKeeper command."""
    if word not in WORDS:
        return None
    write = _ANSWERS.get(word)
    return write(status) if write is not None else f"{word.decode()} is not offered by moldau's controller.\n"


def _statistics(status: PointStatus) -> str:
    return (
        f"Latency min/avg/max: 0/0/0\nReceived: {status.received}\nSent: {status.sent}\n"
        f"Connections: {status.connections}\nOutstanding: 0\nZxid: 0x{max(0, status.offset):x}\n"
        f"Mode: {status.mode}\nNode count: {len(status.brokers)}\n"
    )


def _version(status: PointStatus) -> str:
    return f"Zookeeper version: moldau {status.version}\n"


def _srvr(status: PointStatus) -> str:
    return _version(status) + _statistics(status)


def _stat(status: PointStatus) -> str:
    return f"{_version(status)}Clients:\n{_cons(status)}\n{_statistics(status)}"


def _cons(status: PointStatus) -> str:
    return "".join(f" /{client}\n" for client in status.clients)


def _mntr(status: PointStatus) -> str:
    values = {
        "zk_version": f"moldau {status.version}",
        "zk_server_state": status.mode,
        "zk_avg_latency": 0,
        "zk_max_latency": 0,
        "zk_min_latency": 0,
        "zk_packets_received": status.received,
        "zk_packets_sent": status.sent,
        "zk_num_alive_connections": status.connections,
        "zk_outstanding_requests": 0,
        "zk_znode_count": len(status.brokers),
        "zk_watch_count": 0,
        "zk_ephemerals_count": len(status.brokers),
        "zk_approximate_data_size": 0,
    }
    return "".join(f"{name}\t{value}\n" for name, value in values.items())


def _conf(status: PointStatus) -> str:
    known = {"clientPort": str(status.client_port), "dataDir": status.data_dir}
    return "".join(f"{name}={value}\n" for name, value in (known | dict(status.settings) | known).items())


def _dump(status: PointStatus) -> str:
    brokers = "".join(f"/brokers/ids/{broker.partition(' ')[0]}\n" for broker in status.brokers)
    return f"Sessions with Ephemerals ({len(status.brokers)}):\n{brokers}"


_ANSWERS: Mapping[bytes, Callable[[PointStatus], str]] = {
    b"ruok": lambda _: "imok",
    b"srvr": _srvr,
    b"stat": _stat,
    b"mntr": _mntr,
    b"conf": _conf,
    b"cons": _cons,
    b"dump": _dump,
    b"isro": lambda _: "rw",
    b"envi": lambda status: f"Environment:\nmoldau.version={status.version}\n",
}

WORDS = frozenset(_ANSWERS) | {b"crst", b"dirs", b"gtmk", b"hash", b"reqs", b"srst", b"stmk", b"wchc", b"wchp", b"wchs"}
"""Every four-letter word of ZooKeeper, including those that are not implemented here."""
