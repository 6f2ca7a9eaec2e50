"""What classes of endpoints have in common: a table of rows, and readers of bodies. Start at `Resource`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.core.ids import TopicPartition
from moldau.http.calls import Call, decode_json
from moldau.http.endpoints import Endpoint
from moldau.rest.errors import RestError, partition_not_found
from moldau.rest.proxy import Proxy

__all__ = ["MAX_INT32", "REFUSALS", "Resource", "body_object", "optional_object", "partition_number", "places"]

MAX_INT32 = 2**31 - 1
REFUSALS = {
    400: "The request is malformed, or a broker refused it (40002).",
    404: "There is no such resource (40401, 40402, 40403).",
    406: "The answer cannot have an accepted content type.",
    408: "The body arrives too slowly, or data cannot be read (40801).",
    409: "It exists already, or the instance is in another state (40902, 40903).",
    413: "The body is too large.",
    415: "The body has an unknown content type.",
    422: "A part of the request is invalid (422, 422xx).",
    503: "No broker answers (50302).",
}


class Resource:
    """Some endpoints; subclasses list them in `endpoints`."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy

    def endpoints(self) -> Iterator[Endpoint]:
        raise NotImplementedError


async def body_object(call: Call) -> dict[str, Any]:
    """The body, which has to be an object."""
    return _object(await call.document())


async def optional_object(call: Call) -> dict[str, Any] | None:
    """The body, or `None` if there is none."""
    content = await call.content()
    return _object(decode_json(content)) if content.strip() else None


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise RestError(400, "The body must be a JSON object")
    return document


def partition_number(call: Call, name: str = "partition") -> int:
    """A partition in a path; anything but a number is no partition."""
    text = call.parts[name]
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_INT32:
        raise partition_not_found()
    return int(text)


def places(document: Mapping[str, Any], name: str = "partitions") -> list[TopicPartition]:
    """The `{"topic", "partition"}` pairs of a list in a body."""
    listed = document.get(name)
    if not isinstance(listed, list):
        raise RestError(422, f"{name} must be a list of objects with topic and partition")
    return [place(one, f"{name}[{number}]") for number, one in enumerate(listed)]


def place(one: Any, about: str) -> TopicPartition:
    """One `{"topic", "partition"}` pair."""
    if not isinstance(one, dict) or not isinstance(one.get("topic"), str) or not one["topic"]:
        raise RestError(422, f"{about}: topic must be the name of a topic")
    number = one.get("partition")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_INT32:
        raise RestError(422, f"{about}: partition must be a number from 0")
    return TopicPartition(one["topic"], number)
