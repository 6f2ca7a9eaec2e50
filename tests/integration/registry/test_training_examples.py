"""The three compatibility examples of the training, asked over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.registry.calls import Http

from moldau.testing.registry import SchemaRegistry

FIRSTNAME = {"name": "firstname", "type": "string"}
LASTNAME = {"name": "lastname", "type": "string"}
AGE = {"name": "age", "type": "int", "default": -1}
HOBBY = {"name": "hobby", "type": "string"}
HOBBY_WITH_DEFAULT = {**HOBBY, "default": ""}

EXAMPLES = {
    1: ([LASTNAME, AGE, HOBBY_WITH_DEFAULT], True, False),
    2: ([FIRSTNAME, LASTNAME, HOBBY], False, True),
    3: ([FIRSTNAME, LASTNAME, HOBBY_WITH_DEFAULT], True, True),
}
"""V2's fields, whether the change is backward compatible, and whether it is forward compatible."""


def person(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": "Person", "fields": fields}


V1 = person([FIRSTNAME, LASTNAME, AGE])


@pytest.fixture(scope="module")
def http(registry: SchemaRegistry) -> Iterator[Http]:
    with Http(registry.url) as http:
        yield http


@pytest.mark.parametrize("level", ["BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "NONE"])
@pytest.mark.parametrize("number", EXAMPLES)
def test_an_example_of_the_training(http: Http, number: int, level: str) -> None:
    fields, is_backward, is_forward = EXAMPLES[number]
    subject = f"example-{number}-{level}"
    http.register(subject, V1)
    http.put(f"/config/{subject}", {"compatibility": level})
    expected = (is_backward or level.startswith(("FORWARD", "NONE"))) and (
        is_forward or level.startswith(("BACKWARD", "NONE"))
    )
    path = f"/compatibility/subjects/{subject}/versions/latest"
    assert http.post(path, person(fields)) == (200, {"is_compatible": expected})
    status, _ = http.post(f"/subjects/{subject}/versions", person(fields))
    assert status == (200 if expected else 409)
