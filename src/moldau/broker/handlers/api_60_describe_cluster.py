"""DescribeCluster (60), versions 0-2: the cluster's id and brokers.

v1 distinguishes brokers and controllers, v2 fenced brokers and others. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.topic_views import CLUSTER_OPERATIONS, NOT_ASKED, alive_broker, reachable_brokers
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

BROKERS, CONTROLLERS = 1, 2


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    endpoint_type = request.endpoint_type if call.api_version >= 1 else BROKERS
    if endpoint_type == CONTROLLERS:
        return _error_response(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "This is a broker; controllers are asked elsewhere.")
    if endpoint_type != BROKERS:
        return _error_response(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Endpoints of type {endpoint_type} are not known.")
    image = broker.image
    shows_fenced = call.api_version >= 2 and request.include_fenced_brokers
    brokers = [image.brokers[node_id] for node_id in sorted(image.brokers)] if shows_fenced else image.alive_brokers()
    return Message(
        error_code=ErrorCode.NONE,
        error_message=None,
        endpoint_type=BROKERS,
        cluster_id=broker.cluster_id,
        controller_id=alive_broker(image, broker.node_id),
        brokers=[
            Message(
                broker_id=one.node_id, host=endpoint.host, port=endpoint.port, rack=one.rack, is_fenced=one.is_fenced
            )
            for one, endpoint in reachable_brokers(brokers, call, broker)
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _error_response(error: ErrorCode, message: str) -> Message:
    return Message(
        error_code=error,
        error_message=message,
        endpoint_type=BROKERS,
        cluster_id="",
        controller_id=-1,
        brokers=[],
        cluster_authorized_operations=NOT_ASKED,
    )
