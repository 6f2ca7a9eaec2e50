"""The definition of a connector's settings: types, defaults, checks, recommended values and documentation.

```python
CONFIG = ConfigDef(
    Setting("file", STRING, "The file to read."),
    Setting("batch.size", INT, "Most lines of one batch.", default=2000, valid=at_least(1), importance=LOW),
)
```

`parse` gives typed values or one error that names every bad key; `validate` describes each key for the REST API.
Start at `Setting` and `ConfigDef`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from moldau.connect.api.errors import ConfigError
from moldau.core.config.key import (
    ConfigType,
    Validator,
    at_least,
    between,
    each_of,
    one_of,
    parse_value,
    render_value,
)
from moldau.core.errors import InvalidConfigError

__all__ = [
    "NO_DEFAULT",
    "ConfigDef",
    "ConfigType",
    "ConfigValue",
    "Importance",
    "Setting",
    "Validator",
    "Width",
    "at_least",
    "between",
    "check_all",
    "each_of",
    "errors_of",
    "not_empty",
    "one_of",
    "one_of_ignoring_case",
]

NO_DEFAULT: Final = object()
"""The default of a setting that has to be given."""

Recommender = Callable[[Mapping[str, Any]], "list[Any]"]
"""From the values so far, the values to offer."""


class Importance(Enum):
    """How much attention a setting wants."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """How wide a form shows a setting."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of a configuration."""

    name: str
    type: ConfigType
    doc: str
    default: Any = NO_DEFAULT
    """Typed; without it, the setting is required."""

    valid: Validator | None = None
    """Given the parsed value, returns what is wrong with it, or None."""

    importance: Importance = Importance.HIGH
    group: str | None = None
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    """Keys whose recommended values or visibility follow from this one."""

    recommend: Recommender | None = None
    visible: Callable[[Mapping[str, Any]], bool] | None = None
    synonyms: tuple[str, ...] = ()
    """Other names of the same setting, used if it is not given itself; never listed."""

    @property
    def is_required(self) -> bool:
        return self.default is NO_DEFAULT


@dataclass(slots=True)
class ConfigValue:
    """What validation says about one key."""

    name: str
    value: str | None
    """As text; a password is hidden."""

    recommended_values: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True

    def as_json(self) -> dict[str, Any]:
        """As the REST API shows it."""
        return {
            "name": self.name,
            "value": self.value,
            "recommended_values": self.recommended_values,
            "errors": self.errors,
            "visible": self.visible,
        }


class ConfigDef:
    """The settings that a connector, converter or transform understands. Others in a configuration are left alone."""

    def __init__(self, *settings: Setting) -> None:
        self.settings: dict[str, Setting] = {one.name: one for one in settings}

    def __add__(self, other: ConfigDef) -> ConfigDef:
        return ConfigDef(*self.settings.values(), *other.settings.values())

    def parse(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The typed value of each setting; raises `ConfigError`, which names every bad key at once."""
        values, problems = self._parse(given)
        lines = [line for name in self.settings for line in problems.get(name, ())]
        if lines:
            raise ConfigError(lines)
        return values

    def validate(self, given: Mapping[str, str]) -> list[ConfigValue]:
        """What is right and wrong with each setting; never raises."""
        values, problems = self._parse(given)
        return [self._described(one, given, values, problems.get(one.name, [])) for one in self.settings.values()]

    def _parse(self, given: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        values: dict[str, Any] = {}
        problems: dict[str, list[str]] = {}
        for one in self.settings.values():
            try:
                values[one.name] = _value(one, given)
            except InvalidConfigError as error:
                values[one.name] = None
                problems[one.name] = [str(error) + self._misspelled(one, given)]
        return values, problems

    def _misspelled(self, one: Setting, given: Mapping[str, str]) -> str:
        if not one.is_required or one.name in given:
            return ""
        unknown = [name for name in given if name not in self.settings]
        close = difflib.get_close_matches(one.name, unknown, 1, 0.8)
        return f" ({close[0]} was given: is it a misspelling?)" if close else ""

    def _described(
        self, one: Setting, given: Mapping[str, str], values: Mapping[str, Any], errors: list[str]
    ) -> ConfigValue:
        text = _given_text(one, given)
        value = values[one.name]
        if text is None or not errors:
            text = render_value(value)
        if one.type is ConfigType.PASSWORD and text is not None:
            text = "[hidden]"
        recommended = one.recommend(values) if one.recommend is not None else []
        visible = one.visible(values) if one.visible is not None else True
        return ConfigValue(one.name, text, [render_value(each) for each in recommended], errors, visible)

    def as_json(self) -> list[dict[str, Any]]:
        """The settings as `/connector-plugins/{plugin}/config` lists them."""
        orders: dict[str | None, int] = {}
        listed = []
        for one in self.settings.values():
            orders[one.group] = orders.get(one.group, 0) + 1
            listed.append(
                {
                    "name": one.name,
                    "type": one.type.name,
                    "required": one.is_required,
                    "default_value": None if one.is_required else render_value(one.default),
                    "importance": one.importance.value,
                    "documentation": one.doc,
                    "group": one.group,
                    "width": one.width.value,
                    "display_name": one.display_name or one.name,
                    "dependents": list(one.dependents),
                    "order_in_group": orders[one.group] if one.group is not None else -1,
                }
            )
        return listed

    @property
    def groups(self) -> list[str]:
        """The groups that settings name, in order."""
        return list(dict.fromkeys(one.group for one in self.settings.values() if one.group is not None))


def _given_text(one: Setting, given: Mapping[str, str]) -> str | None:
    for name in (one.name, *one.synonyms):
        if given.get(name) is not None:
            return str(given[name])
    return None


def _value(one: Setting, given: Mapping[str, str]) -> Any:
    text = _given_text(one, given)
    if text is None:
        if one.is_required:
            raise InvalidConfigError(
                f'Missing required configuration "{one.name}" which has no default value. {one.doc}'
            )
        return one.default
    value = parse_value(one.name, one.type, text)
    problem = one.valid(value) if one.valid is not None else None
    if problem is not None:
        shown = "[hidden]" if one.type is ConfigType.PASSWORD else text
        raise InvalidConfigError(f"Invalid value {shown} for configuration {one.name}: {problem}")
    return value


def not_empty(value: Any) -> str | None:
    """For texts and lists: something has to be there."""
    return None if value else "must not be empty"


def one_of_ignoring_case(*allowed: str) -> Validator:
    """One of some words, in any case."""
    lowered = {one.lower() for one in allowed}
    return lambda value: None if str(value).lower() in lowered else f"must be one of {', '.join(allowed)}"


def check_all(*checks: Validator) -> Validator:
    """Several checks; the first problem counts."""

    def check(value: Any) -> str | None:
        return next((problem for one in checks if (problem := one(value)) is not None), None)

    return check


def errors_of(values: Iterable[ConfigValue]) -> list[str]:
    """All problems that validation found, one line each."""
    return [line for value in values for line in value.errors]
