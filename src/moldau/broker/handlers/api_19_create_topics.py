"""CreateTopics (19), versions 2-7: create topics.

v4 allows -1 for the default partition count and replication factor; v5 returns both and the configs; v7 the id.
Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.decisions.topics import Assignment, NewTopic, TopicResult
from moldau.core.config.describe import topic_entries
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    topics = [_new_topic(topic) for topic in request.topics]
    try:
        results = await broker.controller.create_topics(topics, validate_only=request.validate_only)
    except MoldauError as error:
        results = [TopicResult(name=topic.name, error=error.code, message=str(error)) for topic in topics]
    return Message(topics=[_answer(result, broker) for result in results])


def _new_topic(topic: Message) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(Assignment(one.partition_index, tuple(one.broker_ids)) for one in topic.assignments),
        configs={config.name: config.value for config in topic.configs},
    )


def _answer(result: TopicResult, broker: Broker) -> Message:
    if result.error is not ErrorCode.NONE:
        return Message(
            name=result.name,
            topic_id=None,
            error_code=result.error,
            error_message=result.message,
            num_partitions=-1,
            replication_factor=-1,
            configs=[],
        )
    return Message(
        name=result.name,
        topic_id=result.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        topic_config_error_code=ErrorCode.NONE,
        num_partitions=result.partitions,
        replication_factor=result.replication_factor,
        configs=[
            Message(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in topic_entries(broker.config, result.configs)
        ],
    )
