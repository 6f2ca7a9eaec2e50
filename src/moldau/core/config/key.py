"""One configuration key: its type, default, limits, and whether it may change while the broker runs.

The tables of keys are `core.config.topic_keys` and `core.config.broker_keys`; `core.config.broker_config` resolves
values. Start at `ConfigKey`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from typing import Any, NamedTuple, TypeVar

from moldau.core.errors import InvalidConfigError

__all__ = [
    "ConfigKey",
    "ConfigType",
    "Dynamic",
    "TopicConfigKey",
    "UnitSynonym",
    "Validator",
    "at_least",
    "between",
    "each_of",
    "keys_by_name",
    "one_of",
    "parse_value",
    "render_value",
]

Validator = Callable[[Any], "str | None"]
"""Given a parsed value, returns what is wrong with it, or `None` if it is valid."""


class ConfigType(IntEnum):
    """Value types by the numbers DescribeConfigs sends."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Dynamic(Enum):
    """Where a broker key may be changed while the broker runs."""

    READ_ONLY = "read-only"
    CLUSTER = "cluster-wide"
    BROKER = "per-broker"


class UnitSynonym(NamedTuple):
    """Another name of the same setting: its value times `factor` is a value of the key that lists it."""

    name: str
    factor: int = 1
    is_told: bool = True
    """Whether DescribeConfigs lists it; a deprecated name of the same key is not listed."""


class ConfigKey(NamedTuple):
    name: str
    type: ConfigType
    default: Any
    """Typed; `None` if Kafka has no default or derives it."""
    doc: str
    valid: Validator | None = None
    dynamic: Dynamic = Dynamic.READ_ONLY
    synonyms: tuple[UnitSynonym, ...] = ()
    """Consulted in this order, within each layer, when this key is not set in that layer."""
    is_hidden: bool = False
    """Settings that Kafka calls internal: accepted, never listed."""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def is_dynamic(self) -> bool:
        return self.dynamic is not Dynamic.READ_ONLY

    def parse(self, text: str) -> Any:
        """Parse and check a value; raises `InvalidConfigError` naming the key."""
        return parse_value(self.name, self.type, text, self.valid)


class TopicConfigKey(NamedTuple):
    name: str
    type: ConfigType
    default: Any
    doc: str
    valid: Validator | None = None
    broker_key: str | None = None
    """The broker key that applies if the topic does not set it; `None` for settings that only topics have."""

    def parse(self, text: str) -> Any:
        return parse_value(self.name, self.type, text, self.valid)


Key = TypeVar("Key", ConfigKey, TopicConfigKey)


def keys_by_name(keys: Iterable[Key]) -> dict[str, Key]:
    return {key.name: key for key in keys}


def at_least(minimum: int) -> Validator:
    return lambda value: None if value >= minimum else f"must be at least {minimum}"


def between(minimum: float, maximum: float, *, also: int | None = None) -> Validator:
    """Inclusive bounds, with one more allowed value outside of them if `also` is given."""

    def check(value: Any) -> str | None:
        if minimum <= value <= maximum or value == also:
            return None
        return f"must be between {minimum} and {maximum}" + ("" if also is None else f", or {also}")

    return check


def one_of(*allowed: str) -> Validator:
    words = ", ".join(filter(None, allowed))
    return lambda value: None if value in allowed else f"must be one of {words}"


def each_of(*allowed: str, is_empty_allowed: bool = True) -> Validator:
    """For lists: allowed values only, no duplicates."""

    def check(values: Any) -> str | None:
        if not values and not is_empty_allowed:
            return "must not be empty"
        if len(set(values)) != len(values):
            return "must not name anything twice"
        unknown = [value for value in values if value not in allowed]
        return f"may only hold {', '.join(allowed)}" if unknown else None

    return check


_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_value(name: str, kind: ConfigType, text: str, valid: Validator | None = None) -> Any:
    try:
        value = _parse(kind, text.strip())
    except ValueError:
        shown = "[hidden]" if kind is ConfigType.PASSWORD else text
        raise InvalidConfigError(f"Invalid value {shown} for configuration {name}: {_EXPECTED[kind]}") from None
    problem = valid(value) if valid is not None else None
    if problem is not None:
        raise InvalidConfigError(f"Invalid value {text} for configuration {name}: {problem}")
    return value


_EXPECTED = {
    ConfigType.BOOLEAN: "expected true or false",
    ConfigType.SHORT: "expected a 16-bit number",
    ConfigType.INT: "expected a 32-bit number",
    ConfigType.LONG: "expected a 64-bit number",
    ConfigType.DOUBLE: "expected a decimal number",
}


def _parse(kind: ConfigType, text: str) -> Any:
    bits = _INTEGER_BITS.get(kind)
    if bits is not None:
        return _integer(text, bits)
    if kind is ConfigType.BOOLEAN:
        return _boolean(text)
    if kind is ConfigType.DOUBLE:
        return float(text)
    if kind is ConfigType.LIST:
        return [part.strip() for part in text.split(",")] if text else []
    return text


def _integer(text: str, bits: int) -> int:
    # int() accepts "1_000" and non-Latin digits, which Java does not.
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(text)
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def render_value(value: Any) -> str | None:
    """A typed value as the tools print it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _render_double(value)
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    return str(value)


def _render_double(value: float) -> str:
    """Java's spelling: an exponent is a capital E without plus sign or leading zeros."""
    mantissa, exponent_mark, exponent = repr(value).partition("e")
    if not exponent_mark:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
