"""AlterConfigs (33), versions 0-2: the older way, which replaces all settings of a resource.

What is not named goes back to its default. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.configs import ConfigResult, replaced
from moldau.controller.image import ConfigResource
from moldau.core.errors import MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    wanted = [
        (
            ConfigResource(resource.resource_type, resource.resource_name),
            [(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    try:
        results = await broker.controller.alter_configs(
            lambda image: [replaced(image, resource, settings) for resource, settings in wanted],
            validate_only=request.validate_only,
        )
    except MoldauError as error:
        results = [ConfigResult(resource, error.code, str(error)) for resource, _ in wanted]
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
