"""Electing the one instance of a service that writes, through the brokers' group protocol.

How members describe themselves and how they tell each other who leads is a `LeaderProtocol` of the service: schema
registries have theirs in `registry.leadership`. A leader that could not send heartbeats for as long as a session lasts
stops leading by the clock alone, since the others may have elected another by then. Start at `Election`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

from moldau.client.admin import Admin
from moldau.client.errors import ClientError, UnreachableError
from moldau.client.membership import Assigned, GroupProtocol, Membership
from moldau.core.clock import Clock

__all__ = ["Election", "Leader", "LeaderProtocol", "NoLeaderError"]


class NoLeaderError(ClientError):
    """Nobody leads at the moment, though the group can be reached: ask again."""


class Leader(NamedTuple):
    """Who leads, by the URL at which the others reach it."""

    url: str | None = None
    """`None` where no member may lead."""
    error: str | None = None
    """Why nobody leads, where that is a mistake in somebody's settings."""


class LeaderProtocol(GroupProtocol, Protocol):
    """A group protocol by which every member is told the same: who leads."""

    def read_leader(self, assignment: bytes) -> Leader: ...


class Election:
    def __init__(
        self,
        open_admin: Callable[[], Admin],
        group_id: str,
        protocol: LeaderProtocol,
        *,
        own_url: str,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        on_elected: Callable[[], None],
        logger: logging.Logger,
        clock: Clock | None = None,
    ) -> None:
        """`own_url` is this instance's, as its protocol tells it. `on_elected` is called on the loop each time this
        instance becomes the leader."""
        self.own_url = own_url
        self._protocol = protocol
        self._on_elected = on_elected
        self._logger = logger
        self._leader_url: str | None = None
        self._changed = asyncio.Event()
        self._failure: str | None = None
        """Why the group cannot be reached, while that is so and not just for a moment."""
        self._membership = Membership(
            open_admin,
            group_id,
            protocol,
            self,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            logger=logger,
            clock=clock,
        )

    @property
    def is_leader(self) -> bool:
        return self._leader_url == self.own_url and self._membership.is_session_alive

    @property
    def leader_url(self) -> str | None:
        """Where the leader is, if that is another instance and known."""
        return None if self._leader_url == self.own_url else self._leader_url

    async def wait_for_leader(self, timeout_s: float) -> None:
        """Return when somebody leads; raises `NoLeaderError`, or `UnreachableError` where no broker answers."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.leader_url is None and not self.is_leader:
            left_s = deadline - asyncio.get_running_loop().time()
            if self._failure is not None:
                raise UnreachableError(self._failure)
            if left_s <= 0:
                raise NoLeaderError("No leader is known; ask again in a moment")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left_s)
            except TimeoutError:
                continue

    def start(self) -> None:
        self._membership.start()

    async def stop(self, timeout_s: float) -> None:
        """Leave the group, so that another instance takes over at once; where no broker answers, just end."""
        self._learn(None, failure="the service is being stopped")
        await self._membership.stop(timeout_s)

    # What the membership tells, on the event loop

    def on_assigned(self, assigned: Assigned) -> None:
        leader = self._protocol.read_leader(assigned.assignment)
        if leader.error is not None:
            self._logger.error("%s", leader.error)
        self._learn(None if leader.error is not None else leader.url)

    def on_revoked(self) -> None:
        self._learn(None)

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        self._learn(
            self._leader_url if self._membership.is_session_alive else None,
            failure=None if is_transient else str(error),
        )

    def _learn(self, url: str | None, *, failure: str | None = None) -> None:
        old, self._leader_url, self._failure = self._leader_url, url, failure
        self._changed.set()
        if url is not None and url != old:
            self._logger.info("the leader is %s", url)
            if url == self.own_url:
                self._on_elected()
