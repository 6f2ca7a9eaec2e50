"""Altering settings by request: log levels on this broker itself, everything else through the controller.

Shared by the handlers of AlterConfigs and IncrementalAlterConfigs. Start at `alter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.broker.context import Broker
from moldau.broker.health.loggers import apply_levels, levels_to_set
from moldau.controller.decisions.configs import ConfigResult, ResourceChange
from moldau.controller.errors import RefusedError
from moldau.controller.image import ConfigResource, ConfigResourceType, MetadataImage
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["alter"]

ChangeOf = Callable[[MetadataImage], ResourceChange]


async def alter(changes: Sequence[tuple[ConfigResource, ChangeOf]], broker: Broker, *, validate_only: bool) -> Message:
    """Answer for each resource in request order. A change may depend on the settings when it is applied."""
    stored = [change_of for resource, change_of in changes if not _is_local(resource, broker)]
    try:
        answers = await broker.controller.alter_configs(
            lambda image: [change_of(image) for change_of in stored], validate_only=validate_only
        )
    except MoldauError as error:
        answers = [ConfigResult(one, error.code, str(error)) for one, _ in changes if not _is_local(one, broker)]
    remaining = iter(answers)
    results = [
        _alter_loggers(change_of(broker.image), broker, validate_only=validate_only)
        if _is_local(resource, broker)
        else next(remaining)
        for resource, change_of in changes
    ]
    return Message(responses=[_answer(result) for result in results])


def _is_local(resource: ConfigResource, broker: Broker) -> bool:
    """Whether a resource is handled here: log levels, and other brokers' settings, which are refused."""
    if resource.type == ConfigResourceType.BROKER_LOGGER:
        return True
    if broker.node_id < 0:
        return False  # a controller, which keeps the settings of all brokers
    return resource.type == ConfigResourceType.BROKER and resource.name not in ("", str(broker.node_id))


def _alter_loggers(change: ResourceChange, broker: Broker, *, validate_only: bool) -> ConfigResult:
    try:
        if change.resource.name != str(broker.node_id):
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"This is broker {broker.node_id}; send the request to broker {change.resource.name!r}.",
            )
        levels = levels_to_set(change.ops)
    except RefusedError as refusal:
        return ConfigResult(change.resource, refusal.error, str(refusal))
    if not validate_only:
        apply_levels(levels)
    return ConfigResult(change.resource)


def _answer(result: ConfigResult) -> Message:
    return Message(
        error_code=result.error,
        error_message=result.message,
        resource_type=result.resource.type,
        resource_name=result.resource.name,
    )
