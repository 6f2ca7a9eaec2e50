"""What refusals say, word for word where other registries have words for it: tools and people search for them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.registry.sites import PERSON, PERSON_WITH_NAME, Site

WITH_TYPO = {**PERSON, "fields": [{"name": "a", "type": "strnig"}]}


def _message(site: Site, method: str, path: str, document: Any = None) -> tuple[int, str]:
    answer = site.http.request(method, path, json=document)
    return answer.json()["error_code"], answer.json()["message"]


def test_refusals_have_the_words_of_other_registries(site: Site) -> None:
    site.register("s", PERSON)
    site.register(
        "user",
        {"type": "record", "name": "U", "fields": [{"name": "p", "type": "Person"}]},
        references=[{"name": "Person", "subject": "s", "version": 1}],
    )
    site.register("gone", '"string"')
    site.delete("/subjects/gone")
    site.register("half", '"string"')
    site.delete("/subjects/half/versions/1")
    wrong_version = 'Allowed values are between [1, 2^31-1] and the string "latest"'
    for method, path, document, code, message in (
        ("GET", "/subjects/no/versions", None, 40401, "Subject 'no' not found."),
        ("GET", "/subjects/s/versions/7", None, 40402, "Version 7 not found."),
        ("GET", "/schemas/ids/99", None, 40403, "Schema 99 not found"),
        ("POST", "/subjects/s", {"schema": '"int"'}, 40403, "Schema not found"),
        ("DELETE", "/subjects/gone", None, 40404,
         "Subject 'gone' was soft deleted.Set permanent=true to delete permanently"),
        ("DELETE", "/subjects/s?permanent=true", None, 40405,
         "Subject 's' was not deleted first before being permanently deleted"),
        ("DELETE", "/subjects/half/versions/1", None, 40406,
         "Subject 'half' Version 1 was soft deleted.Set permanent=true to delete permanently"),
        ("DELETE", "/subjects/s/versions/1?permanent=true", None, 40407,
         "Subject 's' Version 1 was not deleted first before being permanently deleted"),
        ("GET", "/config/s", None, 40408, "Subject 's' does not have subject-level compatibility configured"),
        ("GET", "/mode/s", None, 40409, "Subject 's' does not have subject-level mode configured"),
        ("GET", "/subjects/s/versions/0", None, 42202,
         f"The specified version '0' is not a valid version id. {wrong_version}"),
        ("GET", "/subjects/s/versions/next", None, 42202,
         f"The specified version 'next' is not a valid version id. {wrong_version}"),
        ("PUT", "/config", {"compatibility": "SOME"}, 42203,
         "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
         "forward_transitive, and full_transitive"),
        ("DELETE", "/subjects/s", None, 42206,
         "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=s,version=1}."),
        ("POST", "/subjects/s/versions", {"schema": "x", "schemaType": "XML"}, 42201,
         "Invalid schema type XML. Known are AVRO, JSON and PROTOBUF"),
    ):  # fmt: skip
        assert _message(site, method, path, document) == (code, message)


def test_an_incompatible_schema_is_told_with_its_subject_and_details(site: Site) -> None:
    site.register("s", PERSON)
    code, message = _message(site, "POST", "/subjects/s/versions", {"schema": json.dumps(PERSON_WITH_NAME)})
    assert code == 40901
    assert message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", '
        "details: [{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'"
    )
    assert message.endswith("{validateFields: 'false', compatibility: 'BACKWARD'}]")


def test_a_schema_that_cannot_be_read_is_shown_in_front_of_the_reason(site: Site) -> None:
    reference = {"name": "X", "subject": "nope", "version": 1}
    code, message = _message(site, "POST", "/subjects/s/versions", {"schema": json.dumps(WITH_TYPO)})
    assert code == 42201
    assert message.startswith("Invalid schema {subject=s,version=0,id=-1,schemaType=AVRO,references=[],metadata=null,")
    assert " with refs [] of type AVRO, details: Invalid Avro schema: unknown type 'strnig'" in message
    code, message = _message(
        site, "POST", "/subjects/s/versions", {"schema": json.dumps(PERSON), "references": [reference]}
    )
    assert code == 42201
    assert (
        " with refs [{name='X', subject='nope', version=1}] of type AVRO, details: "
        'No schema reference found for subject "nope" and version 1' in message
    )


def test_a_message_is_short_however_long_the_schema_is(site: Site) -> None:
    for schema in ('{"type": "' + "x" * 200_000 + '"}', "x" * 200_000, '{"type": 5, "x": "' + "y" * 200_000 + '"}'):
        for schema_type in ("AVRO", "JSON", "PROTOBUF"):
            body = {"schema": schema, "schemaType": schema_type}
            answer = site.http.post("/subjects/s/versions", json=body)
            assert answer.status_code == 422
            assert len(answer.content) < 40_000


@pytest.mark.parametrize("name", ["string", " int\n", "com.shop.Order"])
def test_a_name_without_quotes_is_answered_with_the_quotes_that_are_meant(site: Site, name: str) -> None:
    code, message = _message(site, "POST", "/subjects/s/versions", {"schema": name})
    assert code == 42201
    assert "the Avro schema is not JSON" in message
    assert f'"\\"{name.strip()}\\""' in message
    accepted = f'"{name.strip()}"'
    assert site.post("/subjects/s/versions", accepted)[0] == (422 if "." in name else 200)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/subjects/s/versions", b'{"schema": ' + b"1" * 5_000 + b"}"),
        ("/subjects/s/versions", json.dumps({"schema": "1" * 5_000}).encode()),
        ("/subjects/s/versions", json.dumps({"schema": '{"type": null}'}).encode()),
        ("/subjects/s/versions", json.dumps({"schema": '{"type": true}', "schemaType": "JSON"}).encode()),
        ("/subjects/s/versions", b'{"schema": NaN}'),
        ("/subjects/s/versions", b'{"schema": "\\ud800"}'),
        ("/subjects/s/versions", b"{"),
        ("/subjects/s/versions", b"[" * 100_000),
        ("/config", b'{"compatibility": ' + b"1" * 5_000 + b"}"),
    ],
)
def test_no_answer_speaks_of_python(site: Site, path: str, content: bytes) -> None:
    method = "PUT" if path == "/config" else "POST"
    answer = site.http.request(method, path, content=content)
    assert answer.status_code in (400, 422)
    for word in ("sys.", "json.", "None", "True", "Error", "int(", "Python", "codec"):
        assert word not in answer.json()["message"]


def test_a_failure_of_the_registry_itself_does_not_show_its_insides(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr("moldau.registry.routes.subjects.subjects_below", fail)
    code, message = _message(site, "GET", "/subjects")
    assert code == 50001
    assert "KeyError" not in message
    assert "secret" not in message
