"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from single settings.

Log levels are this broker's own affair; everything else goes through the controller. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.loggers import altered_loggers, apply_levels
from moldau.controller.configs import ConfigOp, ConfigResult, ResourceChange
from moldau.controller.errors import RefusedError
from moldau.controller.image import ConfigResource, ResourceType
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    changes = [_change(resource) for resource in request.resources]
    stored = [change for change in changes if change.resource.type != ResourceType.BROKER_LOGGER]
    try:
        answers = await broker.controller.alter_configs(lambda image: stored, validate_only=request.validate_only)
    except MoldauError as error:
        answers = [ConfigResult(change.resource, error.code, str(error)) for change in stored]
    remaining = iter(answers)
    results = [
        _altered_loggers(change, broker, validate_only=request.validate_only)
        if change.resource.type == ResourceType.BROKER_LOGGER
        else next(remaining)
        for change in changes
    ]
    return Message(
        responses=[
            Message(
                error_code=result.error,
                error_message=result.message,
                resource_type=result.resource.type,
                resource_name=result.resource.name,
            )
            for result in results
        ]
    )


def _change(resource: Message) -> ResourceChange:
    return ResourceChange(
        ConfigResource(resource.resource_type, resource.resource_name),
        tuple(ConfigOp(config.name, config.config_operation, config.value) for config in resource.configs),
    )


def _altered_loggers(change: ResourceChange, broker: Broker, *, validate_only: bool) -> ConfigResult:
    try:
        if change.resource.name != str(broker.node_id):
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"This is broker {broker.node_id}; ask the one it is about.")
        levels = altered_loggers(change.ops)
    except RefusedError as refusal:
        return ConfigResult(change.resource, refusal.error, str(refusal))
    if not validate_only:
        apply_levels(levels)
    return ConfigResult(change.resource)
