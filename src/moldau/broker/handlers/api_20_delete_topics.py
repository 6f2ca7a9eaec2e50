"""DeleteTopics (20), versions 1-6: by name, from v6 on also by id. v5 returns error messages. Start at `handle`."""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.decisions.topics import TopicRef, TopicResult
from moldau.core.config.sections import TopicSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_BY_ID = 6
FIRST_KNOWING_DISABLED = 3


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    refs = _refs(request, call.api_version)
    if not broker.config.section(TopicSettings).delete_topic_enable:
        knows = call.api_version >= FIRST_KNOWING_DISABLED
        error = ErrorCode.TOPIC_DELETION_DISABLED if knows else ErrorCode.INVALID_REQUEST
        return _refuse_all(refs, error, "Topics cannot be deleted: delete.topic.enable is false.")
    try:
        results = await broker.controller.delete_topics(refs)
    except MoldauError as refusal:
        return _refuse_all(refs, refusal.code, str(refusal))
    return Message(responses=[_answer(result) for result in results])


def _refs(request: Message, version: int) -> list[TopicRef]:
    if version >= FIRST_BY_ID:
        return [TopicRef(topic.name, topic.topic_id) for topic in request.topics]
    return [TopicRef(name) for name in request.topic_names]


def _refuse_all(refs: list[TopicRef], error: ErrorCode, message: str) -> Message:
    return Message(
        responses=[
            _answer(TopicResult(name=ref.name, topic_id=ref.topic_id, error=error, message=message)) for ref in refs
        ]
    )


def _answer(result: TopicResult) -> Message:
    return Message(name=result.name, topic_id=result.topic_id, error_code=result.error, error_message=result.message)
