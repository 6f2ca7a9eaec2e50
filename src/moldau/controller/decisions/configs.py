"""Dynamic settings: decides from the image alone which records a change of settings needs.

For each resource, the complete settings after the change are checked; each setting that differs from
before becomes one record. Start at `decide_config_changes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.controller.decisions.eligible_leaders import MIN_ISR, clearing, has_eligible_leaders
from moldau.controller.errors import RefusedError, refusal_of
from moldau.controller.image import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType, MetadataImage
from moldau.controller.topic_names import check_topic_name
from moldau.core.config import TOPIC_KEYS, BrokerConfig, ConfigType, Dynamic, parse_topic_overrides
from moldau.core.config.broker_keys import LISTENER_PREFIX, base_key
from moldau.core.config.group_keys import GROUP_KEYS, parse_group_overrides
from moldau.core.config.key import render_value
from moldau.core.errors import ErrorCode, InvalidConfigError, MoldauError
from moldau.protocol.metadata_records import ConfigRecord, MetadataRecord

__all__ = [
    "ConfigDecision",
    "ConfigOp",
    "ConfigOpType",
    "ConfigResult",
    "ResourceChange",
    "check_group_name",
    "decide_config_changes",
    "replacement_of",
]


class ConfigOpType(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigOp(NamedTuple):
    name: str
    type: int
    value: str | None = None


class ResourceChange(NamedTuple):
    resource: ConfigResource
    ops: tuple[ConfigOp, ...]


class ConfigResult(NamedTuple):
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ConfigDecision(NamedTuple):
    records: list[MetadataRecord]
    results: list[ConfigResult]


THREAD_COUNTS = frozenset(
    {
        "num.network.threads",
        "num.io.threads",
        "background.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "log.cleaner.threads",
    }
)


def decide_config_changes(
    image: MetadataImage, changes: Sequence[ResourceChange], config: BrokerConfig
) -> ConfigDecision:
    """Apply each resource's operations: for one resource either all or none."""
    decision = ConfigDecision([], [])
    asked = Counter(change.resource for change in changes)
    for change in changes:
        try:
            if asked[change.resource] > 1:
                raise RefusedError(ErrorCode.INVALID_REQUEST, "Each resource may appear once in a request.")
            decision.records.extend(_change_records(image, change, config))
        except MoldauError as error:
            decision.results.append(ConfigResult(change.resource, *refusal_of(error)))
            continue
        decision.results.append(ConfigResult(change.resource))
    return decision


def replacement_of(
    image: MetadataImage, resource: ConfigResource, settings: Sequence[tuple[str, str | None]]
) -> ResourceChange:
    """Return the changes for the older AlterConfigs API, which replaces all settings of a resource."""
    sets = [ConfigOp(name, ConfigOpType.SET, value) for name, value in settings]
    named = {name for name, _ in settings}
    deletes = [ConfigOp(name, ConfigOpType.DELETE) for name in image.configs.get(resource, {}) if name not in named]
    return ResourceChange(resource, (*sets, *deletes))


def _change_records(image: MetadataImage, change: ResourceChange, config: BrokerConfig) -> list[MetadataRecord]:
    resource = change.resource
    _check_resource(image, resource)
    _check_ops(change.ops)
    present = image.configs.get(resource, {})
    wanted = dict(present)
    for op in change.ops:
        _apply(wanted, op, resource, config)
    if resource.type == ConfigResourceType.TOPIC:
        parse_topic_overrides(wanted, config)
    elif resource.type == ConfigResourceType.GROUP:
        parse_group_overrides(wanted, config)
    else:
        _check_broker_change(image, resource, {op.name for op in change.ops}, wanted, config)
    names = [op.name for op in change.ops if wanted.get(op.name) != present.get(op.name)]
    if resource == CLUSTER_DEFAULT and MIN_ISR in names and MIN_ISR not in wanted and has_eligible_leaders(image):
        text = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        raise RefusedError(ErrorCode.INVALID_CONFIG, text)
    return [
        *(
            ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=wanted.get(name))
            for name in names
        ),
        *clearing(image, resource, names),
    ]


def _check_resource(image: MetadataImage, resource: ConfigResource) -> None:
    if resource.type == ConfigResourceType.TOPIC:
        check_topic_name(resource.name)
        if resource.name not in image.topics:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    elif resource.type == ConfigResourceType.BROKER:
        _check_broker_name(image, resource.name)
    elif resource.type == ConfigResourceType.GROUP:
        check_group_name(resource.name)
    else:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"Resources of type {resource.type} cannot be configured here.")


def check_group_name(name: str) -> None:
    if not name:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "A group is configured by its id, which cannot be empty.")


def _check_broker_name(image: MetadataImage, name: str) -> None:
    if not name:
        return
    if not (name.isascii() and name.isdigit()):
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"A broker is named by its number, not {name!r}.")
    if int(name) not in image.brokers:
        raise RefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} is registered.")


def _check_ops(ops: Sequence[ConfigOp]) -> None:
    twice = [name for name, count in Counter(op.name for op in ops).items() if count > 1]
    if twice:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"Settings given more than once: {', '.join(twice)}")
    for op in ops:
        if op.type not in tuple(ConfigOpType):
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"Unknown operation {op.type} on {op.name}.")
        if op.value is None and op.type != ConfigOpType.DELETE:
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"Null value not supported for {op.name}.")


def _apply(settings: dict[str, str], op: ConfigOp, resource: ConfigResource, config: BrokerConfig) -> None:
    if op.type == ConfigOpType.DELETE:
        settings.pop(op.name, None)
        return
    assert op.value is not None
    if op.type == ConfigOpType.SET:
        settings[op.name] = op.value
        return
    present = _list_of(settings, op, resource, config)
    given = [part.strip() for part in op.value.split(",") if part.strip()]
    if op.type == ConfigOpType.APPEND:
        changed = [*present, *(part for part in given if part not in present)]
    else:
        changed = [part for part in present if part not in given]
    settings[op.name] = ",".join(changed)


def _list_of(settings: Mapping[str, str], op: ConfigOp, resource: ConfigResource, config: BrokerConfig) -> list[str]:
    """The current items of a list setting; its default if it was never set."""
    if resource.type in (ConfigResourceType.TOPIC, ConfigResourceType.GROUP):
        topic_key = (TOPIC_KEYS if resource.type == ConfigResourceType.TOPIC else GROUP_KEYS).get(op.name)
        kind, default = (topic_key.type, topic_key.default) if topic_key else (None, None)
    else:
        key = base_key(op.name)
        kind, default = (key.type, key.default) if key else (None, None)
    if kind is not ConfigType.LIST:
        verb = "append to" if op.type == ConfigOpType.APPEND else "subtract from"
        raise RefusedError(ErrorCode.INVALID_CONFIG, f"Cannot {verb} {op.name}: it is not a list.")
    text = settings.get(op.name, render_value(default) or "")
    return [part.strip() for part in text.split(",") if part.strip()]


def _check_broker_change(
    image: MetadataImage,
    resource: ConfigResource,
    changed: set[str],
    wanted: Mapping[str, str],
    config: BrokerConfig,
) -> None:
    """Raise INVALID_REQUEST for invalid broker settings, as Kafka does (for topics it is INVALID_CONFIG)."""
    is_cluster_wide = not resource.name
    fixed = sorted(name for name in changed if not _is_dynamic(name))
    if fixed:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: Set({', '.join(fixed)})"
        )
    local = sorted(name for name in changed & wanted.keys() if is_cluster_wide and not _is_cluster_wide(name))
    if local:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"These settings need a broker id, they cannot be set for all: {', '.join(local)}",
        )
    try:
        for name in changed & wanted.keys():
            key = base_key(name)
            assert key is not None
            _check_threads(name, key.parse(wanted[name]), config)
    except InvalidConfigError as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _is_dynamic(name: str) -> bool:
    key = base_key(name)
    return key is not None and key.is_dynamic


def _is_cluster_wide(name: str) -> bool:
    key = base_key(name)
    return key is not None and key.dynamic is Dynamic.CLUSTER and not name.startswith(LISTENER_PREFIX)


def _check_threads(name: str, wanted: int, config: BrokerConfig) -> None:
    """Raise if a thread count is more than doubled or less than halved in one change."""
    if name not in THREAD_COUNTS:
        return
    present = config.value(name)
    if wanted > present * 2 or wanted < present // 2:
        raise InvalidConfigError(
            f"{name} can go from {present} to anything between {present // 2} and {present * 2}, not to {wanted}"
        )
