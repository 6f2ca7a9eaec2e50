"""Requests to the active controller, wherever it is: who leads the quorum is asked anew for each attempt.

Start at `ControllerChannel.send`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.broker_client import BrokerClient, ReconnectBackoff
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["ControllerChannel", "ControllerUnavailableError"]

log = logging.getLogger(__name__)

RETRY_S: Final = 0.05
ATTEMPT_S: Final = 5.0
RESPONSE_BYTES: Final = 64 * 1024 * 1024

Address = tuple[str, int]
Leader = Callable[[], "tuple[int, Address | None]"]


class ControllerUnavailableError(MoldauError):
    """No active controller has answered in time."""

    code = ErrorCode.REQUEST_TIMED_OUT
    retriable = True


class ControllerChannel:
    """Used on one loop. Requests are sent again, as they are, while no active controller answers them."""

    def __init__(self, node_id: int, leader: Leader) -> None:
        self._client_id = f"broker-{node_id}-to-controller"
        self._leader = leader
        self._clients: dict[Address, BrokerClient] = {}
        self._is_closed = False

    async def send(
        self, api_key: ApiKey, request: Message, *, timeout_s: float, attempt_s: float = ATTEMPT_S
    ) -> Message:
        """The answer of the active controller; raises `ControllerUnavailableError` if there is none in time."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        trouble = "no controller is known to lead"
        while not self._is_closed:
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            _, address = self._leader()
            if address is not None:
                try:
                    answer = await self._client(address).send(api_key, request, timeout_s=min(left_s, attempt_s))
                    if answer.error_code != ErrorCode.NOT_CONTROLLER:
                        return answer
                    trouble = f"{address[0]}:{address[1]} is not the active controller"
                except (OSError, MoldauError) as error:
                    trouble = str(error)
            await asyncio.sleep(min(RETRY_S, left_s))
        raise ControllerUnavailableError(f"{api_key.display_name} was not answered within {timeout_s:g} s: {trouble}")

    def _client(self, address: Address) -> BrokerClient:
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = BrokerClient(
                *address,
                client_id=self._client_id,
                request_timeout_s=ATTEMPT_S,
                connect_timeout_s=2.0,
                response_limit_bytes=RESPONSE_BYTES,
                max_in_flight=100,
                backoff=ReconnectBackoff(0.02, 0.5),
            )
        return client

    def close(self) -> None:
        self._is_closed = True
        for client in self._clients.values():
            client.close()
