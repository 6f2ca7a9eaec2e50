"""Requests to other brokers: transaction markers, and questions to the transaction coordinator.

A connection to each, opened when it is needed; where a broker is comes from the metadata. Start at `BrokerPeers.send`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.broker_client import BrokerClient, ReconnectBackoff
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

if TYPE_CHECKING:
    from moldau.broker.context import Broker

__all__ = ["BrokerPeers", "PeerUnavailableError"]

TIMEOUT_S: Final = 5.0

Address = tuple[str, int]


class PeerUnavailableError(MoldauError):
    """Another broker could not be asked; the metadata may soon name another one."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    retriable = True


class BrokerPeers:
    """Used on one loop."""

    def __init__(self, broker: Broker, listener_name: str) -> None:
        self._broker = broker
        self._listener_name = listener_name
        self._clients: dict[Address, BrokerClient] = {}

    async def send(self, node_id: int, api_key: ApiKey, request: Message) -> Message:
        """The answer of a broker; raises `PeerUnavailableError` if it has none for us."""
        registered = self._broker.image.brokers.get(node_id)
        endpoint = None if registered is None else registered.endpoints.get(self._listener_name)
        if endpoint is None:
            raise PeerUnavailableError(f"broker {node_id} has no listener {self._listener_name}")
        try:
            return await self._client((endpoint.host, endpoint.port)).send(api_key, request)
        except (OSError, MoldauError) as error:
            raise PeerUnavailableError(f"broker {node_id}: {error}") from error

    def _client(self, address: Address) -> BrokerClient:
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = BrokerClient(
                *address,
                client_id=f"broker-{self._broker.node_id}",
                request_timeout_s=TIMEOUT_S,
                connect_timeout_s=2.0,
                max_in_flight=1000,
                backoff=ReconnectBackoff(0.02, 0.5),
            )
        return client

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
