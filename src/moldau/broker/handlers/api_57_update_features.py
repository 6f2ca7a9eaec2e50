"""UpdateFeatures (57), versions 0-2: change the feature levels of the cluster, all of them or none.

v1 tells safe downgrades from unsafe ones and may only validate; v2 has no results of single features.
Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.decisions.feature_updates import FeatureUpdate
from moldau.controller.errors import refusal_of
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.features import UpgradeType
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_TYPES = 1


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    has_types = call.api_version >= FIRST_WITH_TYPES
    updates = [
        FeatureUpdate(one.feature, one.max_version_level, one.upgrade_type if has_types else _type_of(one))
        for one in request.feature_updates
    ]
    try:
        await broker.controller.update_features(updates, validate_only=has_types and request.validate_only)
    except MoldauError as refused:
        error, why = refusal_of(refused)
        return Message(error_code=error, error_message=why, results=[])
    results = [Message(feature=one.name, error_code=ErrorCode.NONE, error_message=None) for one in updates]
    return Message(error_code=ErrorCode.NONE, error_message=None, results=results)


def _type_of(update: Message) -> UpgradeType:
    return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
