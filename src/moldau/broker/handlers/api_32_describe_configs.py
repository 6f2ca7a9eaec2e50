"""DescribeConfigs (32), versions 1-4: the values of settings, their sources and their fallbacks.

v1 sources and synonyms, v3 types and documentation. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.health.loggers import logger_levels
from moldau.controller.decisions.configs import check_group_name
from moldau.controller.errors import RefusedError
from moldau.controller.image import ConfigResource, ConfigResourceType
from moldau.controller.topic_names import check_topic_name
from moldau.core.config.describe import (
    ConfigEntry,
    ConfigSource,
    broker_entries,
    cluster_default_entries,
    group_entries,
    topic_entries,
)
from moldau.core.config.key import ConfigType
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    return Message(results=[_describe(resource, request, broker) for resource in request.resources])


def _describe(resource: Message, request: Message, broker: Broker) -> Message:
    try:
        entries = _entries(resource.resource_type, resource.resource_name, broker)
    except RefusedError as refusal:
        return _result(resource, refusal.error, str(refusal), [])
    asked = resource.configuration_keys
    wanted = [entry for entry in entries if asked is None or entry.name in asked]
    return _result(resource, ErrorCode.NONE, None, [_config(entry, request) for entry in wanted])


def _entries(kind: int, name: str, broker: Broker) -> list[ConfigEntry]:
    if kind == ConfigResourceType.TOPIC:
        check_topic_name(name)
        if name not in broker.image.topics:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        return topic_entries(broker.config, broker.image.topic_config(name))
    if kind == ConfigResourceType.BROKER:
        if not name:
            return cluster_default_entries(broker.config)
        _check_is_me(name, broker)
        return broker_entries(broker.config)
    if kind == ConfigResourceType.BROKER_LOGGER:
        _check_is_me(name, broker)
        return [_logger_entry(logger, level) for logger, level in logger_levels().items()]
    if kind == ConfigResourceType.GROUP:
        check_group_name(name)
        return group_entries(broker.config, broker.image.configs.get(ConfigResource(kind, name), {}))
    raise RefusedError(ErrorCode.INVALID_REQUEST, f"Resources of type {kind} have no settings here.")


def _check_is_me(name: str, broker: Broker) -> None:
    """Raise if the request is for another broker: clients send it to the broker it is about."""
    if name != str(broker.node_id):
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"This is broker {broker.node_id}; send the request to broker {name!r}."
        )


def _logger_entry(name: str, level: str) -> ConfigEntry:
    return ConfigEntry(name, level, ConfigSource.BROKER_LOGGER, False, False, ConfigType.STRING, "", ())


def _config(entry: ConfigEntry, request: Message) -> Message:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return Message(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[Message(name=one.name, value=one.value, source=one.source) for one in synonyms],
        config_type=entry.type,
        documentation=entry.doc if request.include_documentation else None,
    )


def _result(resource: Message, error: ErrorCode, message: str | None, configs: list[Message]) -> Message:
    return Message(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )
