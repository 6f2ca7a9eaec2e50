"""Names of operators, and the base classes of options with a name or with serdes. Start at `Named`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Self

from moldau.pipeline.dsl.options.given import check_serdes, option_of
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir.naming import checked_name
from moldau.pipeline.ir.type_variables import K, V
from moldau.serdes.serde import Serde

__all__ = ["Named", "NamedOption", "SerdesOption", "name_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOption(Hinting):
    """Base class of options that may name their operator."""

    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            checked_name(self.name)

    @classmethod
    def as_(cls, name: str) -> Self:
        """Options with only a name, which is given to the operator's node and its other parts."""
        return cls(name=name)

    def with_name(self, name: str) -> Self:
        """These options with another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(NamedOption):
    """The name of one operator; every `named` parameter also accepts a plain string."""


def name_of(named: Named | str | None) -> str | None:
    """The name that was given as `Named` or as a string, or None."""
    if isinstance(named, str):
        return named
    return option_of(named, Named).name


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdesOption(NamedOption, Generic[K, V]):
    """Base class of options that may also have serdes for keys and values."""

    key_serde: Serde[K] | None = None
    value_serde: Serde[V] | None = None

    def __post_init__(self) -> None:
        NamedOption.__post_init__(self)
        check_serdes(self.key_serde, self.value_serde)

    @classmethod
    def with_(cls, key_serde: Serde[K] | None, value_serde: Serde[V] | None) -> Self:
        """Options with only serdes; None means the serde known from upstream, or else the default serde."""
        return cls(key_serde=key_serde, value_serde=value_serde)

    def with_key_serde(self, key_serde: Serde[K]) -> Self:
        """These options with another serde for keys."""
        return replace(self, key_serde=key_serde)

    def with_value_serde(self, value_serde: Serde[V]) -> Self:
        """These options with another serde for values."""
        return replace(self, value_serde=value_serde)
