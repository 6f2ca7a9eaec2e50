"""Options of a serde with a schema, from its constructor and, for options not given there, the application's settings.

Start at `SerdeOptions`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from moldau.core.errors import InvalidConfigError
from moldau.schemas.identity import SchemaReference
from moldau.serdes.schema_source import ConnectSchemas
from moldau.serdes.serde import Part

__all__ = ["GivenSchema", "RegistryOptions", "SerdeOptions", "schema_text"]

GivenSchema = str | Mapping[str, Any] | Sequence[Any] | Path
"""A schema as text, as a Python object (parsed JSON), or as the path of a file."""

DEFAULT_STRATEGY = "TopicNameStrategy"


class RegistryOptions(TypedDict, total=False):
    """Options of every serde with a schema; each overrides the application setting named in its docstring."""

    references: Sequence[Mapping[str, Any]]
    """Registered schemas that the serde's schema refers to, as dicts with `name`, `subject` and `version`."""
    registry_url: str
    """`schema.registry.url`"""
    user_info: str
    """`basic.auth.user.info`, as `user:password`"""
    auto_register: bool
    """`auto.register.schemas`: true (default) registers a schema that the subject does not have yet"""
    use_latest_version: bool
    """`use.latest.version`: true writes with the subject's latest version, even if a schema was given"""
    subject_name_strategy: str
    """`key.subject.name.strategy`, `value.subject.name.strategy`: TopicNameStrategy (default), RecordNameStrategy or
    TopicRecordNameStrategy"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdeOptions:
    """Options of one serde. None means not set: the application's setting applies, or else the default."""

    schema: str | None = None
    references: tuple[SchemaReference, ...] = ()
    reader_schema: str | None = None
    message: str | None = None
    part: Part | None = None
    registry_url: str | None = None
    user_info: str | None = field(default=None, repr=False)
    auto_register: bool | None = None
    use_latest_version: bool | None = None
    subject_name_strategy: str | None = None
    connect: ConnectSchemas | None = field(default=None, repr=False, compare=False)
    """Connects to the schema source; pickled by name, so that every process opens its own connection."""

    @classmethod
    def of(
        cls,
        schema: GivenSchema | None,
        *,
        reader_schema: GivenSchema | None = None,
        message: str | None = None,
        **options: Unpack[RegistryOptions],
    ) -> SerdeOptions:
        """The options given to a serde's constructor."""
        return cls(
            schema=schema_text(schema),
            references=_references(options.get("references", ())),
            reader_schema=schema_text(reader_schema),
            message=message,
            registry_url=options.get("registry_url"),
            user_info=options.get("user_info"),
            auto_register=options.get("auto_register"),
            use_latest_version=options.get("use_latest_version"),
            subject_name_strategy=options.get("subject_name_strategy"),
        )

    def configured(self, config: Mapping[str, Any], part: Part) -> SerdeOptions:
        """These options, with unset ones taken from an application's settings."""
        found: dict[str, Any] = {
            "part": part,
            "registry_url": _text(config, "schema.registry.url"),
            "user_info": _text(config, "basic.auth.user.info"),
            "auto_register": _flag(config, "auto.register.schemas"),
            "use_latest_version": _flag(config, "use.latest.version"),
            "subject_name_strategy": _strategy(config, f"{part}.subject.name.strategy"),
        }
        return replace(self, **{name: value for name, value in found.items() if getattr(self, name) is None})

    @property
    def is_key(self) -> bool:
        return self.part == "key"

    @property
    def may_register(self) -> bool:
        return self.auto_register is not False

    @property
    def strategy(self) -> str:
        return self.subject_name_strategy or DEFAULT_STRATEGY


def schema_text(schema: GivenSchema | None) -> str | None:
    """The text of a schema given in any form; a file is read immediately."""
    if schema is None or isinstance(schema, str):
        return schema
    if not isinstance(schema, Path):
        return json.dumps(schema)
    try:
        return schema.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfigError(f"cannot read the schema in {schema}: {error}") from None


def _references(references: Sequence[Mapping[str, Any]]) -> tuple[SchemaReference, ...]:
    """References to other schemas, from the registry's JSON form: `{"name": …, "subject": …, "version": …}`."""
    try:
        return tuple(SchemaReference(one["name"], one["subject"], int(one["version"])) for one in references)
    except (KeyError, TypeError, ValueError):
        raise InvalidConfigError(f"{references!r}: a reference has a name, a subject and a version") from None


def _text(config: Mapping[str, Any], key: str) -> str | None:
    given = config.get(key)
    if given is None or isinstance(given, str):
        return given
    return ",".join(map(str, given))


def _strategy(config: Mapping[str, Any], key: str) -> str | None:
    given = config.get(key)
    return None if given is None else str(given)


def _flag(config: Mapping[str, Any], key: str) -> bool | None:
    given = config.get(key)
    if given is None or isinstance(given, bool):
        return given
    if str(given).lower() not in ("true", "false"):
        raise InvalidConfigError(f"{key}: {given!r} is not true or false")
    return str(given).lower() == "true"
