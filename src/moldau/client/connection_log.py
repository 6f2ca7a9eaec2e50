"""Log lines about connections: one when a broker becomes unreachable, one when it is back, few in between.

librdkafka logs every failed attempt to connect, up to twenty a second for each client. Here its log lines become
events (`parse_log_line`), events become few lines (`ConnectionStates.lines`), and `ConnectionLog` passes those to a
`Report`. All clients of a process that report to the same place share one `ConnectionLog`, so a
program with ten clients logs once that a broker is unreachable. Start at `ConnectionStates.lines`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

__all__ = [
    "CONNECTED_DEBUG",
    "REMINDER_S",
    "BrokerAnswered",
    "BrokerFailed",
    "ClientLog",
    "Complaint",
    "ConnectionLog",
    "ConnectionStates",
    "Line",
    "Report",
    "parse_log_line",
]

Report = Callable[[str, str], None]
"""Takes a level (`WARN`, `ERROR`) and a text."""

REMINDER_S = 30.0
"""How often a broker that stays unreachable, or an error that persists, is logged again."""

RESTART_S = 2.0
"""A connection that worked may be lost for this long without a log line: brokers restart."""

CONNECTED_DEBUG = "feature"
"""The debug context in which librdkafka logs that a broker has answered a new connection. It logs failed attempts at
its normal level, but a success only as debug output; this context logs next to nothing else."""

_WARNING, _CRITICAL = 30, 50
"""Levels of Python's `logging`, which the binding translates librdkafka's into."""

_THREAD = re.compile(r"^\[thrd:[^\]]*\]: ")
_BROKER = re.compile(r"^(?P<name>\S+?)(?:/(?:bootstrap|-?\d+))?: (?P<rest>.*)$", re.DOTALL)
_NODE = re.compile(r"^(?P<node>\S+:\d+): (?P<rest>.*)$", re.DOTALL)
_CONNECT = re.compile(r"^Connect to ipv[46]#(?P<endpoint>\S+) failed: ")
_STATE = re.compile(r" ?\(after \d+ms in state (?P<state>\w+)(?:, \d+ identical error\(s\) suppressed)?\)")
_LOOPBACK = re.compile(r"^(?:127\.0\.0\.1|\[::1\])(?=:)")
_NUMBERS = re.compile(r"\d+")


class BrokerFailed(NamedTuple):
    """A connection to a broker failed."""

    broker: str
    """The broker as the client knows it: `host:port`."""
    endpoint: str
    """The resolved address and port; empty where librdkafka does not log it."""
    reason: str
    is_timeout: bool = False
    """The failure is a timeout, so seconds have passed already."""


class BrokerAnswered(NamedTuple):
    """A broker has answered the first request of a new connection."""

    broker: str


class Complaint(NamedTuple):
    """Any other line worth logging."""

    level: str
    text: str


Event = BrokerFailed | BrokerAnswered | Complaint


class Line(NamedTuple):
    level: str
    text: str


def parse_log_line(level: int, facility: str, text: str) -> Event | None:
    """The event in a log line of librdkafka; `None` for lines of no interest. `level` is one of Python's `logging`."""
    text = _THREAD.sub("", text)
    if facility == "APIVERSION" and text.endswith("Broker API support:"):
        found = _BROKER.match(text)
        return BrokerAnswered(found["name"]) if found else None
    if level < _WARNING:
        return None
    if facility in ("FAIL", "REQTMOUT") and (failed := _failure(text)) is not None:
        return failed
    return Complaint("ERROR" if level >= _CRITICAL else "WARN", text)


def _failure(text: str) -> BrokerFailed | None:
    found = _BROKER.match(text)
    if found is None:
        return None
    broker, rest = found["name"], found["rest"]
    # A connection to a coordinator has a name of its own, followed by the broker's address.
    if ":" not in broker and (node := _NODE.match(rest)):
        broker, rest = node["node"], node["rest"]
    state = _STATE.search(rest)
    if state is not None and state["state"].startswith("AUTH"):
        # The broker has answered with a rejection, so it is reachable: this is not an outage.
        return None
    reason = _STATE.sub("", rest)
    connect = _CONNECT.match(reason)
    if connect is not None:
        return BrokerFailed(broker, connect["endpoint"], reason[connect.end() :])
    if "imed out" in reason:
        return BrokerFailed(broker, "", "it accepts connections, but does not answer", is_timeout=True)
    return BrokerFailed(broker, "", reason)


@dataclass(slots=True)
class _Outage:
    names: set[str]
    """All names under which this broker failed, as `_same_names` gives them."""
    began_s: float
    clients: set[Hashable] = field(default_factory=set)
    """The clients that have reported it. Only they can report its end: librdkafka delivers log lines when a client is
    polled, so a line of another client may be an hour old."""
    said_s: float | None = None


def _same_names(broker: str, endpoint: str = "") -> set[str]:
    """All names of a broker; the usual names of this machine count as one, since brokers on it mix them."""
    return {_LOOPBACK.sub("localhost", name) for name in (broker, endpoint) if name}


def _is_coordinator(broker: str) -> bool:
    """The connections to coordinators are named after their purpose. The broker they lead to has another name."""
    return ":" not in broker


@dataclass(slots=True)
class ConnectionStates:
    """Which brokers are unreachable, and what was logged about it. No clock: every event comes with its time."""

    _outages: list[_Outage] = field(default_factory=list)
    _have_answered: set[str] = field(default_factory=set)
    _complaints: dict[str, float] = field(default_factory=dict)

    @property
    def is_cut_off(self) -> bool:
        """Whether some broker is unreachable and no other is known to answer: then waiting is pointless."""
        away: set[str] = set().union(*(outage.names for outage in self._outages))
        return bool(away) and all(_is_coordinator(name) or name in away for name in self._have_answered)

    def lines(self, client: str, event: Event, now_s: float, source: Hashable = None) -> list[Line]:
        """The lines to log for an event of a client; for most events there are none.

        `client` names it in the lines; `source` distinguishes it from others of that name.
        """
        match event:
            case BrokerFailed():
                return self._on_failed(client, event, now_s, source)
            case BrokerAnswered():
                return self._on_answered(client, event, now_s, source)
            case Complaint():
                return self._on_complaint(client, event, now_s)

    def _on_failed(self, client: str, event: BrokerFailed, now_s: float, source: Hashable) -> list[Line]:
        if _is_coordinator(event.broker) and self._outages:
            return []
        outage = self._outage_of(event, now_s)
        outage.clients.add(source)
        lasted_s = now_s - outage.began_s
        if outage.said_s is None:
            has_worked = not self._have_answered.isdisjoint(outage.names)
            if has_worked and not event.is_timeout and lasted_s < RESTART_S:
                return []
            text = f"Broker {event.broker} is not available: {event.reason}. Trying until it answers."
        elif now_s - outage.said_s >= REMINDER_S:
            text = f"Broker {event.broker} is still not available after {lasted_s:.0f} s: {event.reason}"
        else:
            return []
        outage.said_s = now_s
        return [Line("WARN", f"[{client}] {text}")]

    def _outage_of(self, event: BrokerFailed, now_s: float) -> _Outage:
        """The outage that this failure belongs to, created if needed."""
        names = _same_names(event.broker, event.endpoint)
        for outage in self._outages:
            if outage.names & names or all(map(_is_coordinator, outage.names)):
                outage.names |= names
                return outage
        self._outages.append(_Outage(names, now_s))
        return self._outages[-1]

    def _on_answered(self, client: str, event: BrokerAnswered, now_s: float, source: Hashable) -> list[Line]:
        names = _same_names(event.broker)
        self._have_answered |= names
        ended = [outage for outage in self._outages if outage.names & names and source in outage.clients]
        self._outages = [outage for outage in self._outages if outage not in ended]
        if all(outage.said_s is None for outage in ended):
            return []
        lasted_s = now_s - min(outage.began_s for outage in ended)
        # At the same level as the line about the failure, so that whoever saw that one sees this one.
        return [Line("WARN", f"[{client}] Broker {event.broker} answers again after {lasted_s:.0f} s")]

    def _on_complaint(self, client: str, event: Complaint, now_s: float) -> list[Line]:
        self._complaints = {text: at for text, at in self._complaints.items() if now_s - at < REMINDER_S}
        plain = _NUMBERS.sub("", event.text)
        if plain in self._complaints:
            return []
        self._complaints[plain] = now_s
        return [Line(event.level, f"[{client}] {event.text}")]


class ConnectionLog:
    """Takes the log lines of any number of clients, and reports few."""

    _shared: ClassVar[WeakValueDictionary[Report, ConnectionLog]] = WeakValueDictionary()
    _shared_lock = threading.Lock()

    def __init__(self, report: Report, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._states = ConnectionStates()
        self._lock = threading.Lock()

    @classmethod
    def to(cls, report: Report) -> ConnectionLog:
        """The one `ConnectionLog` of all clients that report to this place."""
        with cls._shared_lock:
            found = cls._shared.get(report)
            if found is None:
                found = cls._shared[report] = cls(report)
            return found

    def of_client(self, title: str) -> ClientLog:
        """The `logger` setting of a client; `title` names it in Kafka's way, as in `Producer clientId=x`."""
        return ClientLog(self, title)

    @property
    def is_cut_off(self) -> bool:
        """Whether no broker answers these clients, as far as their log lines show."""
        with self._lock:
            return self._states.is_cut_off

    def take(self, title: str, level: int, facility: str, text: str, source: Hashable) -> None:
        event = parse_log_line(level, facility, text)
        if event is None:
            return
        with self._lock:
            lines = self._states.lines(title, event, self._clock(), source)
        for line in lines:
            self._report(*line)


class ClientLog:
    """Stands in for a `logging.Logger` where the binding wants one."""

    __slots__ = ("_log", "_title")

    def __init__(self, log: ConnectionLog, title: str) -> None:
        self._log = log
        self._title = title

    def log(self, level: int, template: str, *parts: Any) -> None:
        """Called by the binding with librdkafka's facility, the client's name and the text."""
        # Most lines of the debug context are of no interest and are dropped after one comparison.
        if level < _WARNING and (not parts or parts[0] != "APIVERSION"):
            return
        facility = str(parts[0]) if len(parts) > 1 else ""
        self._log.take(self._title, level, facility, str(parts[-1] if parts else template), id(self))
