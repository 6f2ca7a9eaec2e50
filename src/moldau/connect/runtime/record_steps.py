"""The steps between a connector and a topic: converters, and the transforms with their predicates.

All are made from the connector's configuration, where it says nothing from the worker's. Start at `RecordSteps.of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from moldau.connect.api.errors import ConfigError
from moldau.connect.api.plugin_kinds import Converter, HeaderConverter, Predicate, Transformation
from moldau.connect.api.plugins import Plugins
from moldau.connect.api.records import ConnectRecord
from moldau.connect.runtime.tolerance import Stage, Tolerance

__all__ = ["RecordSteps", "Step", "listed"]

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

Record = TypeVar("Record", bound=ConnectRecord)


class Step(NamedTuple):
    """A transform, and when it applies."""

    transform: Transformation
    predicate: Predicate | None
    is_negated: bool
    class_name: str

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if self.predicate is not None and self.predicate.test(record) == self.is_negated:
            return record
        return self.transform.apply(record)


@dataclass(frozen=True, slots=True)
class RecordSteps:
    key: Converter
    value: Converter
    header: HeaderConverter
    transforms: tuple[Step, ...]

    @classmethod
    def of(cls, config: Mapping[str, str], worker: Mapping[str, str], plugins: Plugins) -> RecordSteps:
        """The steps of a connector's configuration; raises `ConfigError` and `PluginNotFoundError`."""
        key, key_settings = _chosen("key.converter", config, worker, JSON_CONVERTER)
        value, value_settings = _chosen("value.converter", config, worker, JSON_CONVERTER)
        header, header_settings = _chosen("header.converter", config, worker, SIMPLE_HEADERS)
        key_converter: Converter = plugins.create(key, "converter")
        key_converter.configure(key_settings, is_key=True)
        value_converter: Converter = plugins.create(value, "converter")
        value_converter.configure(value_settings, is_key=False)
        header_converter: HeaderConverter = plugins.create(header, "header_converter")
        header_converter.configure(header_settings)
        return cls(key_converter, value_converter, header_converter, _transforms(config, plugins))

    def transformed(self, record: Record, tolerance: Tolerance, original: Any) -> Record | None:
        """The record after all transforms, None if one dropped it; raises `SkippedError`."""
        current: Any = record
        for step in self.transforms:
            current = tolerance.run(_call(step.apply, current), Stage.TRANSFORMATION, step.class_name, original)
            if current is None:
                return None
        found: Record = current
        return found

    def close(self) -> None:
        """Close all steps."""
        for one in (self.key, self.value, self.header):
            one.close()
        for step in self.transforms:
            step.transform.close()
            if step.predicate is not None:
                step.predicate.close()


def _call(function: Callable[[Any], Any], argument: Any) -> Callable[[], Any]:
    return lambda: function(argument)


def listed(text: str | None) -> list[str]:
    """The words of a comma-separated list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def below(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """The settings below a prefix, without it."""
    return {name.removeprefix(prefix): text for name, text in config.items() if name.startswith(prefix)}


def _chosen(
    name: str, config: Mapping[str, str], worker: Mapping[str, str], default: str
) -> tuple[str, dict[str, str]]:
    """The class of a converter and its settings: a connector that names a class drops the worker's settings."""
    if config.get(name):
        return config[name], below(f"{name}.", config)
    return worker.get(name) or default, below(f"{name}.", worker)


def _transforms(config: Mapping[str, str], plugins: Plugins) -> tuple[Step, ...]:
    predicates = {alias: _predicate(alias, config, plugins) for alias in listed(config.get("predicates"))}
    steps = []
    for alias in listed(config.get("transforms")):
        prefix = f"transforms.{alias}."
        kind = config.get(f"{prefix}type")
        if not kind:
            raise ConfigError([f"{prefix}type is missing: it names the class of the transform {alias}"])
        settings = below(prefix, config)
        settings.pop("type")
        name = settings.pop("predicate", None)
        is_negated = settings.pop("negate", "false").lower() == "true"
        if name is not None and name not in predicates:
            raise ConfigError([f"{prefix}predicate: {name} is not among predicates"])
        transform: Transformation = plugins.create(kind, "transformation")
        transform.configure(settings)
        predicate = predicates[name] if name is not None else None
        steps.append(Step(transform, predicate, is_negated, kind))
    return tuple(steps)


def _predicate(alias: str, config: Mapping[str, str], plugins: Plugins) -> Predicate:
    prefix = f"predicates.{alias}."
    kind = config.get(f"{prefix}type")
    if not kind:
        raise ConfigError([f"{prefix}type is missing: it names the class of the predicate {alias}"])
    settings = below(prefix, config)
    settings.pop("type")
    predicate: Predicate = plugins.create(kind, "predicate")
    predicate.configure(settings)
    return predicate
