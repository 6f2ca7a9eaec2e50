"""Schemas of a few kilobytes that once took all memory, sent to every endpoint that parses or compares."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.registry.sites import Site
from tests.unit.schemas.shared_types import SHARED


@pytest.mark.parametrize("level", ["BACKWARD", "FULL_TRANSITIVE"])
@pytest.mark.parametrize("schema_type", SHARED)
def test_types_that_share_types_are_compared_like_any_others(site: Site, schema_type: str, level: str) -> None:
    old, new = SHARED[schema_type]
    site.put("/config", {"compatibility": level})
    site.register("s", old, schemaType=schema_type)
    assert site.post("/subjects/s/versions", new, schemaType=schema_type) == (409, 40901)
    assert site.post("/subjects/s/versions?normalize=true", new, schemaType=schema_type) == (409, 40901)
    for version in ("", "/latest", "/1"):
        path = f"/compatibility/subjects/s/versions{version}"
        assert site.post(path, new, schemaType=schema_type) == (200, {"is_compatible": False})
        status, answer = site.post(f"{path}?verbose=true", new, schemaType=schema_type)
        assert (status, answer["is_compatible"]) == (200, False)
        assert 3 < len(answer["messages"]) <= 204
    assert site.post("/subjects/s", new, schemaType=schema_type) == (404, 40403)
    for format in ("resolved", "serialized", "ignore_extensions"):
        assert len(site.http.get(f"/schemas/ids/1/schema?format={format}").content) < 30_000


def test_messages_are_bounded_in_number_and_size(site: Site) -> None:
    def wide(kind: str) -> dict[str, Any]:
        properties = {f"p{number}": {"type": kind} for number in range(2_000)}
        return {"type": "object", "properties": {"x" * 5_000: {"type": "object", "properties": properties}}}

    site.register("s", wide("string"), schemaType="JSON")
    status, answer = site.post("/compatibility/subjects/s/versions?verbose=true", wide("integer"), schemaType="JSON")
    assert (status, answer["is_compatible"]) == (200, False)
    assert len(answer["messages"]) == 200 + 4
    assert "{omitted: 1800 more incompatibilities}" in answer["messages"]
    assert max(map(len, answer["messages"])) < 12_000
    refusal = site.http.post("/subjects/s/versions", json={"schema": json.dumps(wide("integer")), "schemaType": "JSON"})
    assert refusal.status_code == 409
    assert len(refusal.content) < 1_000_000


@pytest.mark.parametrize("kind", ["object", ["object", "null"]])
def test_a_hundred_nested_objects_are_registered_and_compared(site: Site, kind: Any) -> None:
    def nested(leaf: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": leaf}
        for _ in range(100):
            schema = {"type": kind, "properties": {"a": schema}}
        return schema

    site.register("s", nested("string"), schemaType="JSON")
    assert site.post("/compatibility/subjects/s/versions", nested("string"), schemaType="JSON") == (
        200,
        {"is_compatible": True},
    )
    assert site.post("/subjects/s/versions", nested("integer"), schemaType="JSON") == (409, 40901)
