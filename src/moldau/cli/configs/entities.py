"""The entity of a config on the command line: `--entity-type topics --entity-name x`, or `--topic x`.

No I/O. Start at `parse_entities`.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.cli.options import Parsed, UsageError

__all__ = ["QUOTA_TYPES", "Entity", "parse_entities"]

QUOTA_TYPES = ("users", "clients", "ips")
TYPES = ("topics", "brokers", *QUOTA_TYPES, "broker-loggers", "client-metrics", "groups")
SHORT = {
    "topic": "topics",
    "broker": "brokers",
    "client": "clients",
    "user": "users",
    "ip": "ips",
    "broker-logger": "broker-loggers",
    "group": "groups",
    "client-metrics": "client-metrics",
}
SHORT_DEFAULTS = {
    "broker-defaults": "brokers",
    "client-defaults": "clients",
    "user-defaults": "users",
    "ip-defaults": "ips",
}
_QUOTA_WORDS = {"users": "user-principal", "clients": "client-id", "ips": "IP"}


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity; the name `None` means all of its type, and `is_default` the default entity of its type."""

    type: str
    name: str | None = None
    is_default: bool = False

    @property
    def singular(self) -> str:
        return self.type if self.type == "client-metrics" else self.type.removesuffix("s")

    @property
    def quota_words(self) -> str:
        """`user-principal 'alice'` or `the default client-id`."""
        word = _QUOTA_WORDS[self.type]
        return f"the default {word}" if self.is_default else f"{word} '{self.name}'"

    @property
    def zookeeper_words(self) -> str:
        """The entity in ZooKeeper-mode output: `topic 'x'`."""
        word = _QUOTA_WORDS.get(self.type, self.singular)
        if self.is_default:
            return f"the default {word}"
        return self.type if self.name is None else f"{word} '{self.name}'"


def parse_entities(parsed: Parsed) -> list[Entity]:
    """One entity, or two for a user's client; raises `UsageError` for options that cannot be combined."""
    long_form, short_form = _long_form(parsed), _short_form(parsed)
    if long_form and short_form:
        raise UsageError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    entities = long_form or short_form
    if not entities:
        raise UsageError('Missing required argument "[entity-type]"')
    for entity in entities:
        _check(entity)
    types = [entity.type for entity in entities]
    if len(set(types)) != len(types):
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(sorted(set(types)))}")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")
    # Kafka always prints the user first.
    return sorted(entities, key=lambda entity: entity.type != "users")


def _long_form(parsed: Parsed) -> list[Entity]:
    types = parsed.values("entity-type")
    names = iter(parsed.values("entity-name"))
    targets = [None if option == "entity-default" else next(names) for option in parsed.order if option in _TARGETS]
    if len(targets) > len(types):
        raise UsageError("--entity-name or --entity-default without an --entity-type")
    filled: list[Entity] = []
    for position, type_ in enumerate(types):
        if position < len(targets):
            filled.append(Entity(type_, targets[position], is_default=targets[position] is None))
        else:
            filled.append(Entity(type_))
    return filled


_TARGETS = ("entity-name", "entity-default")


def _short_form(parsed: Parsed) -> list[Entity]:
    named = [Entity(type_, parsed.value(option)) for option, type_ in SHORT.items() if parsed.has(option)]
    defaults = [Entity(type_, is_default=True) for option, type_ in SHORT_DEFAULTS.items() if parsed.has(option)]
    return named + defaults


def _check(entity: Entity) -> None:
    if entity.type not in TYPES:
        raise UsageError(f"Invalid entity type {entity.type}, the entity type must be one of {', '.join(TYPES)}")
    if entity.is_default and entity.type not in ("brokers", *QUOTA_TYPES):
        raise UsageError(f"There is no default entity of type {entity.type}")
    if entity.type in ("brokers", "broker-loggers") and entity.name is not None and not entity.name.isdigit():
        raise UsageError(
            f"The entity name for {entity.type} must be a valid integer broker id, but instead found: {entity.name}"
        )
