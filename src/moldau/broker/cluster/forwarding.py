"""The controller as a broker of a cluster has it: somewhere else, and asked by requests.

What only the active controller may decide is forwarded to it: the requests of clients as they are (in an Envelope,
`ForwardingController.forward`), and what this broker itself needs, topics and producer ids. What it decided arrives
through the metadata log, as on every other broker.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from moldau.broker.cluster.controller_channel import ControllerChannel, ControllerUnavailableError
from moldau.controller.controller import Controller
from moldau.controller.decisions.topics import NewTopic, TopicResult
from moldau.controller.image import MetadataImage
from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey, decode_response_header, encode_request_header
from moldau.protocol.messages import Message, decode_response, encode_request

if TYPE_CHECKING:
    from moldau.net.session import Session

__all__ = ["ForwardingController"]

TIMEOUT_S: Final = 30.0
CATCH_UP_S: Final = 2.0
CREATE_TOPICS_VERSION: Final = 7


class ForwardingController(Controller):
    """Its `image` is what this broker has applied; `publish` is called with each change of it."""

    def __init__(
        self, quorum: ReplicatedQuorum, config: Callable[[], BrokerConfig], channel: ControllerChannel
    ) -> None:
        super().__init__(quorum, quorum.image, config)
        self._channel = channel
        self._replicated = quorum
        self._applied = asyncio.Condition()
        self.is_active = False

    async def applied(self, image: MetadataImage) -> None:
        """This broker has applied an image."""
        self.image = image
        self.is_active = self._replicated.is_active
        async with self._applied:
            self._applied.notify_all()

    async def wait_for(self, condition: Callable[[MetadataImage], bool], timeout_s: float = CATCH_UP_S) -> None:
        """Wait until this broker has applied what `condition` looks for, or the time is up."""
        try:
            async with asyncio.timeout(timeout_s), self._applied:
                await self._applied.wait_for(lambda: condition(self.image))
        except TimeoutError:
            pass

    # --- clients' requests ------------------------------------------------------------------------------

    async def forward(self, frame: bytes, session: Session, timeout_s: float = TIMEOUT_S) -> bytes:
        """A client's whole request, without its length; returns the whole answer, without its length."""
        return await self._send_envelope(frame, session.principal, session.client_host, timeout_s)

    async def _send_envelope(self, frame: bytes, principal: str, host: str, timeout_s: float) -> bytes:
        request = Message(request_data=frame, request_principal=principal.encode(), client_host_address=_packed(host))
        answer = await self._channel.send(ApiKey.ENVELOPE, request, timeout_s=timeout_s, attempt_s=timeout_s)
        if answer.error_code or answer.response_data is None:
            raise ControllerUnavailableError(f"the controller refused: {ErrorCode(answer.error_code).name}")
        return bytes(answer.response_data)

    # --- what this broker needs -------------------------------------------------------------------------

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicResult]:
        request = Message(
            topics=[
                Message(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    assignments=[
                        Message(partition_index=one.partition, broker_ids=list(one.replicas))
                        for one in topic.assignments
                    ],
                    configs=[Message(name=name, value=value) for name, value in topic.configs.items()],
                )
                for topic in topics
            ],
            timeout_ms=int(TIMEOUT_S * 1000),
            validate_only=validate_only,
        )
        key, version = ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION
        frame = encode_request_header(key, version, 0, "broker") + encode_request(key, version, request)
        data = await self._send_envelope(frame, "User:ANONYMOUS", "", TIMEOUT_S)
        _, position = decode_response_header(key, version, data)
        answer = decode_response(key, version, memoryview(data)[position:])
        results = [
            TopicResult(
                name=one.name,
                topic_id=one.topic_id,
                error=ErrorCode(one.error_code),
                message=one.error_message,
                partitions=one.num_partitions,
                replication_factor=one.replication_factor,
            )
            for one in answer.topics
        ]
        if not validate_only:
            await self.wait_for_topics(
                [one.name or "" for one in results if one.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)]
            )
        return results

    async def wait_for_creation(self, data: bytes, version: int) -> None:
        """Wait until this broker knows the topics that an answer to CreateTopics says were created."""
        _, position = decode_response_header(ApiKey.CREATE_TOPICS, version, data)
        answer = decode_response(ApiKey.CREATE_TOPICS, version, memoryview(data)[position:])
        await self.wait_for_topics([one.name for one in answer.topics if not one.error_code])

    async def wait_for_topics(self, names: Sequence[str]) -> None:
        """Wait until this broker knows them too, so that its client finds what it was told was created."""
        await self.wait_for(lambda image: all(name in image.topics for name in names))

    async def allocate_producer_ids(self, node_id: int, broker_epoch: int = -1) -> range:
        answer = await self._channel.send(
            ApiKey.ALLOCATE_PRODUCER_IDS, Message(broker_id=node_id, broker_epoch=broker_epoch), timeout_s=TIMEOUT_S
        )
        if answer.error_code:
            raise ControllerUnavailableError(
                f"the controller assigned no producer ids: {ErrorCode(answer.error_code).name}"
            )
        return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)


def _packed(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host).packed
    except ValueError:
        return b""
