"""The serde interface: keys or values to bytes and back, for clients, pipelines and command-line tools.

A serde is any object with `serialize(topic, value, headers)` and `deserialize(topic, data, headers)`; one without
`headers` works too. `None` is never passed to a serde: a null key or value stays null. Optional members:

- `encode` and `decode`, functions of one argument that need no topic, are the fast path of pipelines. They reject the
  same values with less helpful messages, except that numbers accept `True` as 1, as Python does;
- `is_plain` says that values are immutable and come back equal, so a store may keep the objects themselves;
- `from_text(topic, text)` parses a value from user input;
- `data_type` is the type of its values, for engines that evaluate expressions over them;
- `configured(settings, part)` returns the serde to use for keys or values under an application's settings;
- `is_checked` says that values are of the right types, so a store may keep plain ones without serializing them;
- `with_schema_source(connect)` declares that the serde needs schemas: see `schema_source`.

Start at `Serde`; `ready_serde` configures a serde for use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeVar

from moldau.core.errors import InvalidConfigError, MoldauError

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultingTypeVar

    from moldau.serdes.schema_source import ConnectSchemas

    # `Serde` alone is `Serde[Any]`. Type checkers support such defaults (PEP 696); Python itself since 3.13.
    T = DefaultingTypeVar("T", default=Any)
else:
    T = TypeVar("T")

__all__ = [
    "Deserializer",
    "Headers",
    "Part",
    "Serde",
    "SerdeError",
    "Serializer",
    "T",
    "bound_deserializer",
    "bound_serializer",
    "check_calls",
    "ready_serde",
    "refuse",
    "short_repr",
    "wants_headers",
    "with_inner",
]

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Part = Literal["key", "value"]
Headers = Sequence[tuple[str, bytes | None]]
"""Record headers: names may repeat, order is kept."""


class SerdeError(MoldauError):
    """A value cannot be serialized, or bytes cannot be deserialized."""


class Serializer(Protocol[T_contra]):
    """Turns an object into the bytes of a key or a value."""

    def serialize(self, topic: str, value: T_contra, headers: Headers | None = None, /) -> bytes:
        """Return the bytes. May raise any exception: the caller reports topic, part and type."""
        ...


class Deserializer(Protocol[T_co]):
    """Turns the bytes of a key or a value into an object."""

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None, /) -> T_co:
        """Return the object. May raise any exception: the caller reports the record and the part."""
        ...


class Serde(Protocol[T]):
    """Serializer and deserializer in one object."""

    def serialize(self, topic: str, value: T, headers: Headers | None = None, /) -> bytes: ...

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None, /) -> T: ...


# Calling serdes


def bound_serializer(serializer: Serializer[Any]) -> Callable[[str, Any, Headers], bytes]:
    """`serialize` as a function of topic, value and headers, even if the serde's method takes no headers."""
    serialize: Callable[..., bytes] = serializer.serialize
    return serialize if _takes_headers(serialize) else lambda topic, value, headers: serialize(topic, value)


def bound_deserializer(deserializer: Deserializer[Any]) -> Callable[[str, bytes, Headers], Any]:
    """`deserialize` as a function of topic, bytes and headers, even if the serde's method takes no headers."""
    deserialize: Callable[..., Any] = deserializer.deserialize
    return deserialize if _takes_headers(deserialize) else lambda topic, data, headers: deserialize(topic, data)


def wants_headers(serde: Serde) -> bool:
    """Whether a serde uses headers: its `uses_headers` if present, else whether its methods accept headers."""
    declared = getattr(serde, "uses_headers", None)
    if declared is not None:
        return bool(declared)
    return _takes_headers(serde.serialize) or _takes_headers(serde.deserialize)


def _takes_headers(method: Callable[..., Any]) -> bool:
    function = getattr(method, "__func__", None)
    return _takes(method, 3) if function is None else _takes(function, 4)


@lru_cache(maxsize=256)
def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        # No signature available, as for some C functions.
        return True
    return True


def check_calls(serde: object, *methods: str) -> None:
    """Raise `InvalidConfigError` for an object that lacks a method, or whose methods take `(data, context)`.

    The old toolkit called serializers that way; called with topic and value, they would write wrong data.
    """
    if isinstance(serde, type):
        raise InvalidConfigError(f"{serde.__name__} is a class, and an object is needed: write {serde.__name__}()")
    for name in methods:
        method = getattr(serde, name, None)
        if not callable(method):
            raise InvalidConfigError(f"{serde!r} has no method {name}(topic, value, headers)")
        if _second_parameter(method) in ("context", "ctx"):
            raise InvalidConfigError(
                f"{type(serde).__name__}.{name} takes (data, context), and serdes are called with "
                "(topic, value, headers): change its parameters"
            )


def _second_parameter(method: Callable[..., Any]) -> str:
    try:
        names = list(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return ""
    return names[1] if len(names) > 1 else ""


# Configuring serdes


def ready_serde(serde: Serde, settings: Mapping[str, Any], part: Part, connect: ConnectSchemas) -> Serde:
    """The serde for keys or values with an application's settings applied, and a schema source if it needs one.

    Raises `InvalidConfigError` for settings that can never work.
    """

    def prepare(one: Serde) -> Serde:
        needs_schemas = getattr(one, "with_schema_source", None)
        connected = one if needs_schemas is None else needs_schemas(connect)
        configure = getattr(connected, "configured", None)
        ready: Serde = connected if configure is None else configure(settings, part)
        return ready

    return with_inner(serde, prepare)


def with_inner(serde: Serde, change: Callable[[Serde], Serde]) -> Serde:
    """The serde after `change`; for a list or windowed serde, its inner serde is changed instead."""
    if not getattr(serde, "has_inner", False):
        return change(serde)
    outer: Any = serde
    inner = with_inner(outer.inner, change)
    whole: Serde = serde if inner is outer.inner else replace(outer, inner=inner)
    return whole


# Errors


def refuse(value: object, wanted: str) -> NoReturn:
    """Raise `SerdeError`: a serde cannot write a value."""
    raise SerdeError(f"{short_repr(value)} ({type(value).__name__}) is not {wanted}; use a serde for its type")


def short_repr(value: object) -> str:
    """The start of a value's `repr`, for messages."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
