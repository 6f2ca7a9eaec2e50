"""Requests to the other controllers: a connection to each, opened when it is needed. Start at `QuorumPeers.ask`."""

from __future__ import annotations

import logging

from moldau.controller.quorum.wire import reply_from_wire, request_to_wire
from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.broker_client import BrokerClient, ReconnectBackoff
from moldau.raft.messages import Reply, Request

__all__ = ["QuorumPeers"]

log = logging.getLogger(__name__)

FIRST_RECONNECT_S = 0.02
LONGEST_RECONNECT_S = 0.5

Address = tuple[str, int]


class QuorumPeers:
    """Used on one loop."""

    def __init__(self, node_id: int, *, request_timeout_s: float) -> None:
        self._client_id = f"raft-client-{node_id}"
        self._request_timeout_s = request_timeout_s
        self._clients: dict[Address, BrokerClient] = {}
        self._strangers: set[Address] = set()

    async def ask(self, address: Address, request: Request) -> Reply | None:
        """Send a request and return the reply; `None` if there was none, or none that makes sense."""
        api_key, message = request_to_wire(request)
        try:
            answer = await self._client(address).send(api_key, message)
            self._note_cluster(address, answer.error_code)
            return reply_from_wire(request, answer)
        except (OSError, MoldauError, ValueError):
            return None

    def _note_cluster(self, address: Address, error_code: int) -> None:
        """Say once that a controller belongs to another cluster: it never answers otherwise."""
        if error_code != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._strangers.discard(address)
        elif address not in self._strangers:
            self._strangers.add(address)
            log.error(
                "the controller at %s:%d belongs to another cluster; format both folders with one cluster id, or "
                "correct controller.quorum.voters",
                *address,
            )

    def _client(self, address: Address) -> BrokerClient:
        client = self._clients.get(address)
        if client is None:
            host, port = address
            client = self._clients[address] = BrokerClient(
                host,
                port,
                client_id=self._client_id,
                request_timeout_s=self._request_timeout_s,
                connect_timeout_s=self._request_timeout_s,
                backoff=ReconnectBackoff(FIRST_RECONNECT_S, LONGEST_RECONNECT_S),
            )
        return client

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
