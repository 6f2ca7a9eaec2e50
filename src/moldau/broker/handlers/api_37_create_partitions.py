"""CreatePartitions (37), versions 0-3: add partitions to existing topics. Start at `handle`."""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.decisions.topics import MorePartitions, TopicResult
from moldau.core.errors import MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    topics = [_more_partitions(topic) for topic in request.topics]
    try:
        results = await broker.controller.create_partitions(topics, validate_only=request.validate_only)
    except MoldauError as error:
        results = [TopicResult(name=topic.name, error=error.code, message=str(error)) for topic in topics]
    return Message(
        results=[Message(name=result.name, error_code=result.error, error_message=result.message) for result in results]
    )


def _more_partitions(topic: Message) -> MorePartitions:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(one.broker_ids) for one in topic.assignments)
    return MorePartitions(name=topic.name, total=topic.count, assignments=assignments)
