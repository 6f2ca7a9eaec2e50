"""ApiVersions (18), versions 0-4: the APIs and versions this broker supports.

The first request of every connection. A version that is too new is answered in version 0 with error 35 and the whole
list, so that the client can choose another one. v3 sends the client's name and returns features; v4 may return features
that begin at level 0, which older clients reject. Start at `handle`.
"""

from __future__ import annotations

import re

from moldau.broker.context import Broker, RequestContext
from moldau.broker.router import ROUTES, announced_ranges
from moldau.controller.features import SUPPORTED
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["handle"]

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?", re.ASCII)
FIRST_WITH_SOFTWARE = 3
FIRST_WITH_ZERO_LEVELS = 4


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    own = ROUTES[ApiKey.API_VERSIONS]
    if not own.first <= call.api_version <= own.last:
        return Message(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_api_keys())
    if call.api_version >= FIRST_WITH_SOFTWARE and not _is_named_properly(request):
        return Message(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    image = broker.image
    return Message(
        error_code=ErrorCode.NONE,
        api_keys=_api_keys(),
        supported_features=[
            Message(name=name, min_version=level.min, max_version=level.max)
            for name, level in SUPPORTED.items()
            if level.min > 0 or call.api_version >= FIRST_WITH_ZERO_LEVELS
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            Message(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.features.items()
            if level > 0
        ],
        zk_migration_ready=False,
    )


def _api_keys() -> list[Message]:
    return [
        Message(api_key=one.api_key, min_version=one.min_version, max_version=one.max_version)
        for one in announced_ranges()
    ]


def _is_named_properly(request: Message) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) is not None for name in names)
