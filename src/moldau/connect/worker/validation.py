"""Checks a connector's configuration: the keys of all connectors, the connector's own, its transforms and converters.

Every bad key is named at once. Start at `validate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moldau.connect.api.config_def import ConfigDef, ConfigType, ConfigValue, Importance, Setting, at_least, one_of
from moldau.connect.api.connector import Connector, ExactlyOnceSupport, SinkConnector, SourceConnector
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.plugins import Plugins
from moldau.connect.runtime.record_steps import below, listed
from moldau.connect.runtime.secrets import Secrets
from moldau.core.errors import InvalidConfigError

__all__ = ["ConfigInfos", "connector_definition", "validate"]

STRING, INT, LONG, LIST, BOOLEAN, CLASS = (
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
    ConfigType.BOOLEAN,
    ConfigType.CLASS,
)
LOW, MEDIUM = Importance.LOW, Importance.MEDIUM
COMMON, TRANSFORMS, ERRORS, PREDICATES = "Common", "Transforms", "Error Handling", "Predicates"


def _is_name(value: Any) -> str | None:
    if not value:
        return "must not be empty"
    return "must not hold / or control characters" if re.search(r"[/\x00-\x1f\x7f]", value) else None


_COMMON = (
    Setting("name", STRING, "The connector's name, unique in its cluster.", valid=_is_name, group=COMMON),
    Setting("connector.class", STRING, "The connector: its full name, its simple name or its alias.", group=COMMON),
    Setting("tasks.max", INT, "How many tasks it may have.", default=1, valid=at_least(1), group=COMMON),
    Setting(
        "tasks.max.enforce",
        BOOLEAN,
        "Whether a connector that makes more tasks fails.",
        default=True,
        importance=LOW,
        group=COMMON,
    ),
    Setting("key.converter", CLASS, "Replaces the worker's.", default=None, importance=LOW, group=COMMON),
    Setting("value.converter", CLASS, "Replaces the worker's.", default=None, importance=LOW, group=COMMON),
    Setting("header.converter", CLASS, "Replaces the worker's.", default=None, importance=LOW, group=COMMON),
    Setting("transforms", LIST, "Names of transforms, in order.", default=[], importance=LOW, group=TRANSFORMS),
    Setting("predicates", LIST, "Names of predicates.", default=[], importance=LOW, group=PREDICATES),
    Setting(
        "config.action.reload",
        STRING,
        "What to do when a secret expires.",
        default="restart",
        valid=one_of("restart", "none"),
        importance=LOW,
        group=COMMON,
    ),
    Setting(
        "errors.retry.timeout",
        LONG,
        "How long a failed step is retried, in ms; -1 without end.",
        default=0,
        valid=at_least(-1),
        importance=MEDIUM,
        group=ERRORS,
    ),
    Setting(
        "errors.retry.delay.max.ms",
        LONG,
        "The longest pause between two attempts.",
        default=60_000,
        valid=at_least(1),
        importance=MEDIUM,
        group=ERRORS,
    ),
    Setting(
        "errors.tolerance",
        STRING,
        "none: a bad record ends the task; all: it is reported and skipped.",
        default="none",
        valid=one_of("none", "all"),
        importance=MEDIUM,
        group=ERRORS,
    ),
    Setting(
        "errors.log.enable", BOOLEAN, "Whether failures are logged.", default=False, importance=MEDIUM, group=ERRORS
    ),
    Setting(
        "errors.log.include.messages",
        BOOLEAN,
        "Whether the log shows the record.",
        default=False,
        importance=MEDIUM,
        group=ERRORS,
    ),
)
_SINK = (
    Setting("topics", LIST, "The topics to read.", default=[], group=COMMON),
    Setting("topics.regex", STRING, "A pattern of the topics to read.", default=None, group=COMMON),
    Setting(
        "errors.deadletterqueue.topic.name",
        STRING,
        "The topic of records that failed.",
        default="",
        importance=MEDIUM,
        group=ERRORS,
    ),
    Setting(
        "errors.deadletterqueue.topic.replication.factor",
        INT,
        "Replicas of a new dead-letter topic.",
        default=3,
        importance=MEDIUM,
        group=ERRORS,
    ),
    Setting(
        "errors.deadletterqueue.context.headers.enable",
        BOOLEAN,
        "Whether headers say why a record failed.",
        default=False,
        importance=MEDIUM,
        group=ERRORS,
    ),
)
_SOURCE = (
    Setting(
        "topic.creation.groups",
        LIST,
        "Groups of topics that are created alike.",
        default=[],
        importance=LOW,
        group=COMMON,
    ),
    Setting(
        "exactly.once.support",
        STRING,
        "required: refuse a connector that cannot deliver exactly once.",
        default="requested",
        valid=one_of("requested", "required"),
        importance=MEDIUM,
        group="Exactly Once Support",
    ),
    Setting(
        "transaction.boundary",
        STRING,
        "Where transactions end: after each poll, after an interval, or where the connector says.",
        default="poll",
        valid=one_of("poll", "connector", "interval"),
        importance=MEDIUM,
        group="Exactly Once Support",
    ),
    Setting(
        "transaction.boundary.interval.ms",
        LONG,
        "The interval of transactions; offset.flush.interval.ms unless given.",
        default=None,
        importance=LOW,
        group="Exactly Once Support",
    ),
    Setting(
        "offsets.storage.topic", STRING, "Another topic for source offsets.", default=None, importance=LOW, group=COMMON
    ),
)


class ConfigInfos:
    """What validation says."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.configs: list[dict[str, Any]] = []
        self.groups: list[str] = []
        self._values: dict[str, ConfigValue] = {}

    def add(self, definition: ConfigDef, values: list[ConfigValue], prefix: str = "", group: str | None = None) -> None:
        """Add keys and what is said of them; keys that are there already keep the first definition."""
        described = {one["name"]: one for one in definition.as_json()}
        for value in values:
            name = f"{prefix}{value.name}"
            if name in self._values:
                self._values[name].errors += [one for one in value.errors if one not in self._values[name].errors]
                continue
            found = described.get(value.name) or ConfigDef(Setting(value.name, STRING, "", default=None)).as_json()[0]
            value.name = name
            self._values[name] = value
            shown = {**found, "name": name}
            if group is not None:
                shown["group"] = group
            self.configs.append({"definition": shown, "value": value})
            if shown["group"] and shown["group"] not in self.groups:
                self.groups.append(shown["group"])

    def add_error(self, name: str, error: str) -> None:
        """Say that something is wrong with a key, whether it is defined or not."""
        if name not in self._values:
            self.add(ConfigDef(), [ConfigValue(name, None)])
        if error not in self._values[name].errors:
            self._values[name].errors.append(error)

    @property
    def errors(self) -> list[str]:
        """All errors, in the order of the keys."""
        return [error for value in self._values.values() for error in value.errors]

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "error_count": len(self.errors),
            "groups": self.groups,
            "configs": [{"definition": one["definition"], "value": one["value"].as_json()} for one in self.configs],
        }


def connector_definition(connector: Connector) -> ConfigDef:
    """The settings of all connectors of its kind, and its own."""
    common = (*_COMMON, *(_SINK if isinstance(connector, SinkConnector) else _SOURCE))
    own = [one for name, one in connector.config_def.settings.items() if name not in {each.name for each in common}]
    return ConfigDef(*common, *own)


def validate(config: Mapping[str, str], plugins: Plugins, worker: Mapping[str, str]) -> ConfigInfos:
    """Check a configuration; raises `PluginNotFoundError` for an unknown class. May block."""
    connector = plugins.connector(config.get("connector.class", ""))
    infos = ConfigInfos(config.get("connector.class", ""))
    try:
        resolved = Secrets(worker).resolve(config)
    except InvalidConfigError as error:
        resolved = dict(config)
        for line in str(error).splitlines():
            infos.add_error(line.partition(":")[0], line)
    common = (*_COMMON, *(_SINK if isinstance(connector, SinkConnector) else _SOURCE))
    definition = ConfigDef(*common)
    infos.add(definition, definition.validate(resolved))
    infos.add(connector.config_def, connector.validate(resolved))
    _check_plugins(infos, resolved, plugins)
    if isinstance(connector, SinkConnector):
        _check_sink(infos, resolved)
    elif isinstance(connector, SourceConnector):
        _check_source(infos, resolved, connector)
    _check_overrides(infos, resolved, worker)
    _hide(infos, config, resolved)
    return infos


def _hide(infos: ConfigInfos, config: Mapping[str, str], resolved: Mapping[str, str]) -> None:
    """Show references instead of the values they stand for."""
    changed = {name: text for name, text in config.items() if resolved.get(name) != text}
    for one in infos.configs:
        value: ConfigValue = one["value"]
        if value.name in changed:
            secret = resolved[value.name]
            value.errors = [error.replace(secret, changed[value.name]) if secret else error for error in value.errors]
            value.value = changed[value.name] if value.value != "[hidden]" else value.value


def _check_plugins(infos: ConfigInfos, config: Mapping[str, str], plugins: Plugins) -> None:
    for part, kind in (("key", "converter"), ("value", "converter"), ("header", "header_converter")):
        name = f"{part}.converter"
        if config.get(name):
            _check_plugin(infos, name, config[name], kind, below(f"{name}.", config), f"{name}.", plugins)
    for list_name, kind, group in (
        ("transforms", "transformation", TRANSFORMS),
        ("predicates", "predicate", PREDICATES),
    ):
        aliases = listed(config.get(list_name))
        if len(set(aliases)) != len(aliases):
            infos.add_error(list_name, f"{list_name} names something twice: {config[list_name]}")
        for alias in aliases:
            prefix = f"{list_name}.{alias}."
            given = config.get(f"{prefix}type")
            if not given:
                infos.add_error(f"{prefix}type", f"{prefix}type is missing: it names the class of {alias}")
                continue
            settings = below(prefix, config)
            label = f"{group}: {alias}"
            _check_plugin(infos, f"{prefix}type", given, kind, settings, prefix, plugins, label)
            predicate = settings.get("predicate") if list_name == "transforms" else None
            if predicate and predicate not in listed(config.get("predicates")):
                infos.add_error(f"{prefix}predicate", f"{prefix}predicate: {predicate} is not among predicates")


def _check_plugin(  # noqa: PLR0917
    infos: ConfigInfos,
    key: str,
    name: str,
    kind: str,
    settings: Mapping[str, str],
    prefix: str,
    plugins: Plugins,
    group: str | None = None,
) -> None:
    try:
        plugin = plugins.create(name, kind)
    except (ConnectError, ImportError, AttributeError) as error:
        infos.add_error(key, f"Invalid value {name} for configuration {key}: {error}")
        return
    definition: ConfigDef = plugin.config_def
    values = definition.validate(settings)
    for value in values:
        value.errors = [error.replace(value.name, f"{prefix}{value.name}", 1) for error in value.errors]
    infos.add(definition, values, prefix, group)


def _check_sink(infos: ConfigInfos, config: Mapping[str, str]) -> None:
    topics, pattern = listed(config.get("topics")), config.get("topics.regex")
    if bool(topics) == bool(pattern):
        said = "Must configure one of topics or topics.regex" + (", not both" if topics else "")
        infos.add_error("topics", said)
        infos.add_error("topics.regex", said)
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            infos.add_error("topics.regex", f"topics.regex: {pattern!r} is not a pattern: {error}")
    letters = config.get("errors.deadletterqueue.topic.name")
    if letters and letters in topics:
        infos.add_error("topics", f"The dead-letter topic {letters} may not be among topics: it would never end")


def _check_source(infos: ConfigInfos, config: Mapping[str, str], connector: SourceConnector) -> None:
    is_required = config.get("exactly.once.support") == "required"
    if is_required and connector.exactly_once_support(config) is not ExactlyOnceSupport.SUPPORTED:
        infos.add_error("exactly.once.support", "The connector cannot deliver exactly once with this configuration")
    if config.get("transaction.boundary") == "connector" and not connector.can_define_transaction_boundaries(config):
        infos.add_error("transaction.boundary", "The connector does not define transaction boundaries")
    default = below("topic.creation.default.", config)
    if listed(config.get("topic.creation.groups")) and not {"partitions", "replication.factor"} <= default.keys():
        infos.add_error(
            "topic.creation.groups",
            "topic.creation.groups needs topic.creation.default.partitions and "
            "topic.creation.default.replication.factor",
        )
    for name, text in config.items():
        is_count = name.startswith("topic.creation.") and name.endswith((".partitions", ".replication.factor"))
        if is_count and not re.fullmatch(r"-1|[1-9][0-9]{0,8}", text):
            infos.add_error(name, f"Invalid value {text} for configuration {name}: must be at least 1, or -1")


def _check_overrides(infos: ConfigInfos, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
    policy = worker.get("connector.client.config.override.policy", "All").rpartition(".")[2]
    policy = policy.removesuffix("ConnectorClientConfigOverridePolicy") or "All"
    for name in config:
        if not name.startswith(("producer.override.", "consumer.override.", "admin.override.")):
            continue
        setting = name.split(".override.")[1]
        is_allowed = policy == "All" or (policy == "Principal" and setting.startswith(("sasl.", "security.protocol")))
        if not is_allowed:
            infos.add_error(name, f"{name}: the worker's policy ({policy}) does not allow this override")
