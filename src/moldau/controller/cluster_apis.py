"""What brokers ask of the active controller, as Kafka's messages: registration, heartbeats, ISR changes, producer ids,
and the requests of their clients that only a controller can answer.

`ControllerApis` has the table; these are its rows for a cluster with brokers. An Envelope carries a client's whole
request: it is decoded here, answered by the handler that a broker would use, and its answer is put into the reply.
Start at `ClusterApis.answer`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from moldau.controller.active_controller import ActiveController, ElectionResult
from moldau.controller.broker_sessions import Heartbeat
from moldau.controller.decisions.brokers import BrokerRegistration
from moldau.controller.decisions.elections import IsrProposal
from moldau.controller.decisions.replica_places import ReplicaPlace
from moldau.controller.errors import RefusedError, refusal_of
from moldau.controller.hand_over import HandedMetadata
from moldau.controller.image import Endpoint, TopicImage
from moldau.controller.topic_names import METADATA_TOPIC
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.api import (
    ApiKey,
    MalformedRequestError,
    RequestHeader,
    decode_request_header,
    encode_response_header,
)
from moldau.protocol.messages import Message, decode_request, encode_response

__all__ = ["CLUSTER_APIS", "ClusterApis", "Forwarded"]

log = logging.getLogger(__name__)

CLUSTER_APIS: Final[Mapping[int, tuple[int, int]]] = {
    # Not records of clients: the whole metadata of a broker that had its own (`controller.hand_over`).
    ApiKey.PRODUCE: (9, 9),
    ApiKey.ALTER_PARTITION: (2, 3),
    ApiKey.ENVELOPE: (0, 0),
    ApiKey.BROKER_REGISTRATION: (0, 4),
    ApiKey.BROKER_HEARTBEAT: (0, 1),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: (0, 0),
    # Of tools that are given the address of a controller; those of brokers' clients come in Envelopes.
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.UNREGISTER_BROKER: (0, 0),
}
UNKNOWN_EPOCH: Final = -1
FIRST_WITH_EPOCHS: Final = 3
PREFERRED, UNCLEAN = 0, 1

Forwarded = Callable[[Message, RequestHeader, str], "Awaitable[Message] | None"]
"""Answers a client's request that a broker forwarded, given its header and the client's host; `None` if it is none
that a controller answers."""


class ClusterApis:
    def __init__(
        self,
        controller: ActiveController,
        *,
        cluster_id: str,
        forwarded: Forwarded,
        take_over: Callable[[HandedMetadata], Awaitable[None]] | None = None,
    ) -> None:
        self._controller = controller
        self._cluster_id = cluster_id
        self._forwarded = forwarded
        self._take_over = take_over

    async def answer(self, request: Message, header: RequestHeader) -> Message:
        """The reply to a request of `CLUSTER_APIS`."""
        match header.api_key:
            case ApiKey.BROKER_REGISTRATION:
                return await self._register(request)
            case ApiKey.BROKER_HEARTBEAT:
                return await self._heartbeat(request)
            case ApiKey.ALTER_PARTITION:
                return await self._alter_partitions(request, header.api_version)
            case ApiKey.ALLOCATE_PRODUCER_IDS:
                return await self._allocate(request)
            case ApiKey.ASSIGN_REPLICAS_TO_DIRS:
                return await self._place_replicas(request)
            case ApiKey.PRODUCE:
                return await self._produce(request)
            case ApiKey.ENVELOPE:
                return await self._open_envelope(request)
        answer = self._forwarded(request, header, "")
        assert answer is not None
        return await answer

    async def _register(self, request: Message) -> Message:
        try:
            if request.cluster_id != self._cluster_id:
                raise RefusedError(
                    ErrorCode.INCONSISTENT_CLUSTER_ID,
                    f"broker {request.broker_id} belongs to another cluster, {request.cluster_id}",
                )
            epoch = await self._controller.register(_registration_of(request))
        except MoldauError as error:
            code, why = refusal_of(error)
            if code is not ErrorCode.NOT_CONTROLLER:
                log.warning("broker %d is not registered: %s", request.broker_id, why)
            return Message(error_code=code, broker_epoch=-1)
        return Message(error_code=ErrorCode.NONE, broker_epoch=epoch)

    async def _heartbeat(self, request: Message) -> Message:
        beat = Heartbeat(
            request.broker_id,
            request.broker_epoch,
            request.current_metadata_offset,
            request.want_fence,
            request.want_shut_down,
        )
        try:
            answer = await self._controller.heartbeat(beat)
        except MoldauError as error:
            code, _ = refusal_of(error)
            return Message(error_code=code, is_caught_up=False, is_fenced=True, should_shut_down=False)
        return Message(
            error_code=answer.error,
            is_caught_up=answer.is_caught_up,
            is_fenced=answer.is_fenced,
            should_shut_down=answer.should_shut_down,
        )

    async def _allocate(self, request: Message) -> Message:
        try:
            block = await self._controller.allocate_producer_ids(request.broker_id, request.broker_epoch)
        except MoldauError as error:
            return Message(error_code=refusal_of(error)[0], producer_id_start=-1, producer_id_len=0)
        return Message(error_code=ErrorCode.NONE, producer_id_start=block.start, producer_id_len=len(block))

    async def _produce(self, request: Message) -> Message:
        try:
            handed = HandedMetadata.from_wire(request)
            if self._take_over is None:
                raise RefusedError(
                    ErrorCode.INVALID_REQUEST,
                    "only a controller that is the only voter accepts the metadata of a broker",
                )
            await self._take_over(handed)
            code = ErrorCode.NONE
        except MoldauError as error:
            code, why = refusal_of(error)
            log.info("metadata is not taken over: %s", why)
        answer = Message(index=0, error_code=code, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1)
        answer.record_errors, answer.error_message = [], None
        responses = [Message(name=METADATA_TOPIC, partition_responses=[answer])]
        return Message(responses=responses, throttle_time_ms=0)

    # --- AlterPartition ---------------------------------------------------------------------------------

    async def _alter_partitions(self, request: Message, version: int) -> Message:
        proposals = [
            (TopicImage("", topic.topic_id, {}), one.partition_index, _proposal(request.broker_id, one, version))
            for topic in request.topics
            for one in topic.partitions
        ]
        try:
            answers = iter(await self._controller.alter_partitions(request.broker_id, request.broker_epoch, proposals))
        except MoldauError as error:
            return Message(error_code=refusal_of(error)[0], topics=[])
        topics = []
        for topic in request.topics:
            partitions = []
            for one in topic.partitions:
                error_code, state = next(answers)
                partitions.append(
                    Message(
                        partition_index=one.partition_index,
                        error_code=error_code,
                        leader_id=-1 if state is None else state.leader,
                        leader_epoch=-1 if state is None else state.leader_epoch,
                        isr=[] if state is None else list(state.isr),
                        leader_recovery_state=0 if state is None else state.leader_recovery_state,
                        partition_epoch=-1 if state is None else state.partition_epoch,
                    )
                )
            topics.append(Message(topic_id=topic.topic_id, partitions=partitions))
        return Message(error_code=ErrorCode.NONE, topics=topics)

    async def _place_replicas(self, request: Message) -> Message:
        places = [
            ReplicaPlace(directory.id_, topic.topic_id, one.partition_index)
            for directory in request.directories
            for topic in directory.topics
            for one in topic.partitions
        ]
        try:
            codes = iter(await self._controller.place_replicas(request.broker_id, request.broker_epoch, places))
        except MoldauError as error:
            return Message(error_code=refusal_of(error)[0], directories=[])
        return Message(
            error_code=ErrorCode.NONE,
            directories=[
                Message(
                    id_=directory.id_,
                    topics=[
                        Message(
                            topic_id=topic.topic_id,
                            partitions=[
                                Message(partition_index=one.partition_index, error_code=next(codes))
                                for one in topic.partitions
                            ],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in request.directories
            ],
        )

    # --- requests of brokers' clients -------------------------------------------------------------------

    async def _open_envelope(self, request: Message) -> Message:
        data = bytes(request.request_data)
        try:
            header = decode_request_header(data)
            inner = decode_request(header.api_key, header.api_version, data[header.body_position :])
        except (MalformedRequestError, ValueError) as error:
            log.warning("refused an Envelope whose request cannot be decoded: %s", error)
            return Message(response_data=None, error_code=ErrorCode.INVALID_REQUEST)
        if not self._controller.quorum_is_active:
            return Message(response_data=None, error_code=ErrorCode.NOT_CONTROLLER)
        try:
            answer = await self._answer_forwarded(inner, header, _host_of(bytes(request.client_host_address)))
        except MoldauError as error:
            return Message(response_data=None, error_code=refusal_of(error)[0])
        if answer is None:
            return Message(response_data=None, error_code=ErrorCode.UNSUPPORTED_VERSION)
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        body = encode_response(header.api_key, header.api_version, answer)
        return Message(response_data=head + body, error_code=ErrorCode.NONE)

    async def _answer_forwarded(self, request: Message, header: RequestHeader, host: str) -> Message | None:
        if header.api_key == ApiKey.ELECT_LEADERS:
            return await self._elect(request, header.api_version)
        answer = self._forwarded(request, header, host)
        return None if answer is None else await answer

    async def _elect(self, request: Message, version: int) -> Message:
        kind = request.election_type if version >= 1 else PREFERRED
        if kind not in (PREFERRED, UNCLEAN):
            return Message(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=[])
        asked = request.topic_partitions
        wanted = None if asked is None else [(topic.topic, number) for topic in asked for number in topic.partitions]
        results = await self._controller.elect_leaders(wanted, may_lose=kind == UNCLEAN)
        by_topic: dict[str, list[ElectionResult]] = {}
        for result in results:
            by_topic.setdefault(result.topic, []).append(result)
        return Message(
            error_code=ErrorCode.NONE,
            replica_election_results=[
                Message(
                    topic=name,
                    partition_result=[
                        Message(partition_id=one.partition, error_code=one.error, error_message=None) for one in found
                    ],
                )
                for name, found in by_topic.items()
            ],
        )


def _registration_of(request: Message) -> BrokerRegistration:
    endpoints = [Endpoint(one.name, one.host, one.port, one.security_protocol) for one in request.listeners]
    log_dirs = [one for one in getattr(request, "log_dirs", None) or [] if one is not None]
    previous_epoch = getattr(request, "previous_broker_epoch", UNKNOWN_EPOCH)
    return BrokerRegistration(
        request.broker_id, request.incarnation_id, endpoints, request.rack, log_dirs, previous_epoch
    )


def _proposal(leader_id: int, one: Message, version: int) -> IsrProposal:
    if version >= FIRST_WITH_EPOCHS:
        isr = tuple((member.broker_id, member.broker_epoch) for member in one.new_isr_with_epochs)
    else:
        isr = tuple((member, UNKNOWN_EPOCH) for member in one.new_isr)
    return IsrProposal(leader_id, one.leader_epoch, one.partition_epoch, isr, one.leader_recovery_state)


def _host_of(address: bytes) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return ""
