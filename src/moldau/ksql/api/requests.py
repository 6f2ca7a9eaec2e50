"""The bodies of requests: what clients send to `/ksql`, `/query` and `/query-stream`. Unknown members are ignored.

Start at `StatementRequest.of` and `QueryRequest.of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.ksql.settings import is_query_property, plain_property_name

__all__ = ["QueryRequest", "StatementRequest", "checked_properties", "checked_system_property"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRequest:
    """Statements to run, with the properties and variables of the session."""

    text: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    sequence_number: int | None = None
    """The command that must have run before."""

    @classmethod
    def of(cls, document: Any) -> StatementRequest:
        """The body of `/ksql`; raises `RequestError`."""
        body = _object(document)
        number = body.get("commandSequenceNumber")
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise RequestError(f"commandSequenceNumber must be a whole number, not {number!r}")
        return cls(
            text=_text(body, "ksql"),
            properties=checked_properties(body.get("streamsProperties")),
            variables=_variables(body.get("sessionVariables")),
            sequence_number=number,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """One query to answer with rows."""

    text: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Any, *, text_member: str, properties_member: str) -> QueryRequest:
        """The body of `/query` or `/query-stream`, which name the same things differently; raises `RequestError`."""
        body = _object(document)
        return cls(
            text=_text(body, text_member),
            properties=checked_properties(body.get(properties_member)),
            variables=_variables(body.get("sessionVariables")),
        )


def checked_properties(given: Any) -> dict[str, Any]:
    """Properties that a session may set, by their names without prefix; raises `RequestError` for others."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise RequestError("Properties must be a JSON object of names and values")
    for name in given:
        if not is_query_property(name):
            raise RequestError(
                f"One or more properties overrides set locally are prohibited by the KSQL server: [{name}]"
            )
    return {plain_property_name(name): value for name, value in given.items()}


def checked_system_property(name: str) -> None:
    """Raise `RequestError` for a property that ALTER SYSTEM does not know."""
    if not is_query_property(name):
        raise RequestError(
            f"Failed to set {name}: not recognizable as ksql, streams, consumer, or producer property. SHOW PROPERTIES "
            "lists those that can be changed",
            ErrorKind.BAD_STATEMENT,
        )


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise RequestError("Invalid JSON in request: expected an object")
    return document


def _text(body: Mapping[str, Any], name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str):
        raise RequestError(f'Invalid JSON in request: "{name}" must be a text with statements')
    return text


def _variables(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise RequestError("sessionVariables must be a JSON object of names and values")
    return {str(name): str(value) for name, value in given.items()}
