"""Fields that a request need not have are ignored: clients send back what they were answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.registry.sites import PERSON, Site

ANSWERED = {"guid": "x", "ts": 5, "deleted": False, "maxId": 9, "schemaTags": [], "somethingNew": {"a": []}}


@pytest.mark.parametrize(
    "path",
    [
        "/subjects/s/versions",
        "/subjects/s",
        "/compatibility/subjects/s/versions",
        "/compatibility/subjects/s/versions/1",
    ],
)
def test_a_schema_may_be_sent_with_whatever_its_answer_had(site: Site, path: str) -> None:
    site.register("s", PERSON)
    assert site.post(path, PERSON, subject="s", version=0, **ANSWERED)[0] == 200


def test_an_answer_can_be_sent_back_as_it_is(site: Site) -> None:
    site.register("s", PERSON)
    answered = site.get("/subjects/s/versions/1")[1]
    assert {"guid", "ts", "deleted"} <= answered.keys()
    for path in ("/subjects/s", "/compatibility/subjects/s/versions/latest"):
        assert site.call("POST", path, answered)[0] == 200
    assert site.call("POST", "/subjects/s", site.get("/schemas/ids/1")[1])[0] == 200


def test_references_metadata_and_rules_may_have_more_fields(site: Site) -> None:
    site.register("s", PERSON)
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "p", "type": "Person"}]}
    site.register(
        "outer",
        outer,
        references=[{"name": "Person", "subject": "s", "version": 1, "guid": "x"}],
        metadata={"properties": {"a": "b"}, "more": 1},
        ruleSet={"domainRules": [{"name": "r", "type": "CEL", "more": 1}], "more": 1},
    )


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/config", {"compatibility": "FULL", "somethingNew": 1}),
        ("/config/s", {"compatibility": "NONE", "somethingNew": 1}),
        ("/mode", {"mode": "READWRITE", "somethingNew": 1}),
        ("/mode/s", {"mode": "READWRITE", "somethingNew": 1}),
    ],
)
def test_settings_may_have_more_fields(site: Site, path: str, document: dict[str, Any]) -> None:
    status, answered = site.put(path, document)
    assert status == 200
    assert "somethingNew" not in answered


def test_a_tag_request_may_have_more_fields(site: Site) -> None:
    site.register("s", PERSON)
    document = {"metadata": {"properties": {"a": "b"}}, "somethingNew": 1}
    assert site.call("POST", "/subjects/s/versions/1/tags", document)[0] == 200


def test_the_openapi_document_closes_no_request(site: Site) -> None:
    assert 'additionalProperties": false' not in json.dumps(site.get("/openapi.json")[1])
