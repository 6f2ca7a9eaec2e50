"""ElectLeaders (43), versions 0-2: elect the preferred replica as leader, or any that is alive.

A request for all partitions returns only those that needed an election. In a cluster of one broker there is never
another candidate: a partition either has its leader or waits for its only replica. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.image import NO_LEADER, MetadataImage, PartitionImage
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

PREFERRED, UNCLEAN = 0, 1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    kind = request.election_type if call.api_version >= 1 else PREFERRED
    if kind not in (PREFERRED, UNCLEAN):
        return Message(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=[])
    image = broker.image
    if request.topic_partitions is None:
        return _elections_needed(image, kind)
    results = [
        Message(
            topic=asked.topic,
            partition_result=[
                _result(number, _outcome(image.partition(asked.topic, number), kind)) for number in asked.partitions
            ],
        )
        for asked in request.topic_partitions
    ]
    return Message(error_code=ErrorCode.NONE, replica_election_results=results)


def _elections_needed(image: MetadataImage, kind: int) -> Message:
    results = []
    for topic in image.topics.values():
        outcomes = {number: _outcome(partition, kind) for number, partition in topic.partitions.items()}
        needed = [_result(*one) for one in outcomes.items() if one[1] is not ErrorCode.ELECTION_NOT_NEEDED]
        if needed:
            results.append(Message(topic=topic.name, partition_result=needed))
    return Message(error_code=ErrorCode.NONE, replica_election_results=results)


def _outcome(partition: PartitionImage | None, kind: int) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if kind == PREFERRED and partition.leader != partition.replicas[0]:
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if kind == UNCLEAN and partition.leader == NO_LEADER:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ErrorCode.ELECTION_NOT_NEEDED


def _result(number: int, error: ErrorCode) -> Message:
    return Message(partition_id=number, error_code=error, error_message=None)
