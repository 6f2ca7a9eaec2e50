"""Servers with one service id share its queries: each query runs on one of them, another takes it if that one goes.

The servers are members of a group, whose assignment is the list of their addresses. From that list every server sees
for itself which queries are its own, so that a new query needs no new assignment, and one that leaves moves only its
queries. A query that is moved finds its state in the shared folder; its lock and its group keep two engines from
running it at the same time. Start at `QuerySharing`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence

from moldau.client.admin import Admin
from moldau.client.coordination.membership import Assigned, Membership

__all__ = ["QuerySharing", "SharingProtocol", "owner_of"]

PROTOCOL_TYPE, PROTOCOL = "ksql", "v0"
SESSION_TIMEOUT_MS = 10_000
HEARTBEAT_INTERVAL_MS = 1_000
STOP_S = 2.0

_logger = logging.getLogger("moldau.ksql")


def owner_of(query_id: str, urls: Sequence[str]) -> str:
    """The server that runs a query: the one with the highest score for it, so that others keep theirs when one goes."""
    return max(urls, key=lambda url: hashlib.sha256(f"{url} {query_id}".encode()).digest())


class SharingProtocol:
    """Metadata is a server's URL, the assignment is all of them."""

    protocol_type = PROTOCOL_TYPE
    name = PROTOCOL

    def __init__(self, own_url: str) -> None:
        self._own_url = own_url

    def metadata(self) -> bytes:
        return json.dumps({"url": self._own_url}).encode()

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        urls = [str(json.loads(content)["url"]) for content in members.values()]
        for url in {url for url in urls if urls.count(url) > 1}:
            _logger.error(
                "%d servers have the same URL, %s: give each a ksql.advertised.listener of its own",
                urls.count(url),
                url,
            )
        assignment = json.dumps(sorted(set(urls))).encode()
        return dict.fromkeys(members, assignment)


class QuerySharing:
    """This server among those with its service id. Runs on the event loop that starts it."""

    def __init__(
        self, own_url: str, group_id: str, open_admin: Callable[[], Admin], on_change: Callable[[], None]
    ) -> None:
        """`on_change` is called when queries may have changed their servers."""
        self.own_url = own_url
        self.urls: tuple[str, ...] = ()
        """The servers that share the queries; empty until this one has joined them."""
        self._on_change = on_change
        self._membership = Membership(
            open_admin,
            group_id,
            SharingProtocol(own_url),
            self,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            logger=_logger,
        )

    def start(self) -> None:
        self._membership.start()

    async def stop(self) -> None:
        """Leave, so that others take the queries at once."""
        await self._membership.stop(STOP_S)

    @property
    def others(self) -> tuple[str, ...]:
        """The other servers."""
        return tuple(url for url in self.urls if url != self.own_url)

    def owner(self, query_id: str) -> str | None:
        """The server that runs a query; None before this one has joined."""
        return owner_of(query_id, self.urls) if self.urls else None

    def is_own(self, query_id: str) -> bool:
        """Whether this server runs a query."""
        return self.owner(query_id) == self.own_url

    # MembershipListener

    def on_assigned(self, assigned: Assigned) -> None:
        urls = tuple(str(url) for url in json.loads(assigned.assignment))
        if urls != self.urls:
            self.urls = urls
            if self.others:
                _logger.info("%d servers share the queries: %s", len(urls), ", ".join(urls))
            self._on_change()

    def on_revoked(self) -> None:
        """Queries go on where they are until it is known who is there."""

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        """The queries have the same brokers and wait for them too."""
