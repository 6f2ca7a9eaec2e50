"""Counters of the hot paths: plain integers, added to in place and read when somebody scrapes.

Names, labels and rates are `broker.metrics`. Everything here only grows, except the gauges that say so.
Start at `TopicStats`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

__all__ = ["BrokerStats", "RequestStats", "TopicStats", "note_reply"]

if TYPE_CHECKING:
    from moldau.protocol.messages import EncodedResponse, Message


RECENT_SAMPLES = 1024


class TopicStats:
    """What one topic took in and gave out on this broker."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_conversions",
        "produce_requests",
        "replication_bytes_in",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.failed_produce_requests = 0
        self.fetch_requests = 0
        self.failed_fetch_requests = 0
        self.produce_conversions = 0
        self.replication_bytes_in = 0

    def add(self, other: TopicStats) -> None:
        """Take another topic's counts into these, as when a topic goes and the totals must not fall."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class RequestStats:
    """One API's requests: exact counts, and the times of a recent sample of them."""

    __slots__ = ("by_version", "errors", "recent_request_bytes", "recent_total_ms")

    def __init__(self) -> None:
        self.by_version: Counter[int] = Counter()
        self.errors: Counter[int] = Counter()
        """Error codes sent, without NONE."""
        self.recent_total_ms: deque[float] = deque(maxlen=RECENT_SAMPLES)
        """From the whole request received to its reply handed to the socket."""
        self.recent_request_bytes: deque[int] = deque(maxlen=RECENT_SAMPLES)

    def sample(self, total_ms: float, request_bytes: int) -> None:
        """Take one request as an example of many."""
        self.recent_total_ms.append(total_ms)
        self.recent_request_bytes.append(request_bytes)

    @property
    def count(self) -> int:
        return self.by_version.total()


class BrokerStats:
    """All counters that belong to no single topic. What waits, and where, is asked of `broker.data.data_plane`."""

    def __init__(self) -> None:
        self.requests: dict[int, RequestStats] = {}
        self.no_key_compacted_records = 0
        self.invalid_magic_records = 0
        self.invalid_crc_records = 0
        self.invalid_offset_or_sequence_records = 0
        self.invalid_schema_records = 0

    def of(self, api_key: int) -> RequestStats:
        found = self.requests.get(api_key)
        if found is None:
            found = self.requests[api_key] = RequestStats()
        return found


def note_reply(stats: RequestStats, response: Message | EncodedResponse, started_s: float) -> None:
    """Count every error in the reply, however deep it lies, and keep its time."""
    # A response that is encoded already tells its errors itself.
    codes = getattr(response, "error_codes", None) if isinstance(response, tuple) else _error_codes(response)
    for code in codes or ():
        stats.errors[code] += 1
    stats.recent_total_ms.append((perf_counter() - started_s) * 1000)


def _error_codes(message: Message) -> Iterator[int]:
    for name, value in vars(message).items():
        if name == "error_code":
            if value:
                yield int(value)
        elif isinstance(value, list) and value and hasattr(value[0], "__dict__"):
            for inner in value:
                yield from _error_codes(inner)
