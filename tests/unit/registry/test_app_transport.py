"""Content types, verbs, bodies that are not what they should be, and what the registry tells about itself."""

from __future__ import annotations

import pytest
from tests.unit.registry.sites import PERSON, Site

V1 = "application/vnd.schemaregistry.v1+json"
PLAIN = "application/vnd.schemaregistry+json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, V1),
        ("*/*", V1),
        ("*", V1),
        ("text/html, image/gif, *; q=.2, */*; q=.2", V1),
        ("application/*", V1),
        ("application/json", "application/json"),
        (PLAIN, PLAIN),
        (f"{V1}, {PLAIN}; q=0.9, application/json; q=0.5", V1),
        ("application/json, text/html;q=0.9", "application/json"),
        (f"{V1};q=0, application/json", "application/json"),
    ],
)
def test_the_content_type_is_negotiated(site: Site, accept: str | None, expected: str) -> None:
    headers = {} if accept is None else {"accept": accept}
    answer = site.http.get("/subjects", headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, expected)


def test_what_cannot_be_accepted_is_406(site: Site) -> None:
    answer = site.http.get("/subjects", headers={"accept": "text/html"})
    assert answer.status_code == 406
    assert answer.json() == {"error_code": 406, "message": "HTTP 406 Not Acceptable"}


@pytest.mark.parametrize(
    "content_type", [V1, PLAIN, "application/json", "application/octet-stream", f"{V1}; charset=utf-8"]
)
def test_four_content_types_are_read_as_json(site: Site, content_type: str) -> None:
    answer = site.http.put("/config", content=b'{"compatibility":"FULL"}', headers={"content-type": content_type})
    assert answer.status_code == 200


def test_a_body_without_a_content_type_is_read_as_json(site: Site) -> None:
    assert site.http.put("/config", content=b'{"compatibility":"FULL"}').status_code == 200


def test_another_content_type_is_415(site: Site) -> None:
    answer = site.http.put("/config", content=b"<x/>", headers={"content-type": "text/xml"})
    assert answer.status_code == 415
    assert answer.json() == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"schema": NaN}', 400),
        (b'{"schema": "\\ud800"}', 400),
        (b"[" * 100_000, 400),
        (b'{"version": ' + b"1" * 5000 + b"}", 400),
        (b"", 422),
        (b"   ", 422),
        (b"null", 422),
        (b"[]", 422),
        (b"7", 422),
    ],
)
def test_bodies_that_are_no_document_have_their_number(site: Site, body: bytes, code: int) -> None:
    for path in ("/subjects/s/versions", "/subjects/s", "/compatibility/subjects/s/versions/latest"):
        answer = site.http.post(path, content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error_code"]) == (code, code)


def test_unknown_paths_and_verbs(site: Site) -> None:
    answer = site.http.get("/nowhere")
    assert (answer.status_code, answer.json()) == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    answer = site.http.put("/subjects")
    assert (answer.status_code, answer.json()["error_code"]) == (405, 405)
    assert answer.headers["allow"] == "GET"
    assert site.get("/subjects/")[0] == 200


def test_head_is_get_without_the_body(site: Site) -> None:
    answer = site.http.head("/subjects")
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "2")


def test_a_schema_larger_than_the_topic_takes_is_refused(site: Site) -> None:
    fields = ",".join(f'{{"name":"field_{number}","type":"string","doc":"{"x" * 1000}"}}' for number in range(5000))
    schema = f'{{"type":"record","name":"R","fields":[{fields}]}}'
    assert len(schema) > 5_000_000
    assert site.post("/subjects/s/versions", schema) == (422, 42209)
    assert site.store.log == []


def test_a_body_larger_than_any_schema_is_not_read(site: Site) -> None:
    answer = site.http.post("/subjects/s", content=b" " * (32 * 1024 * 1024 + 1))
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


def test_the_root_says_that_somebody_is_here(site: Site) -> None:
    assert site.get("/") == (200, {})
    assert site.call("POST", "/") == (200, {})


def test_the_registry_tells_what_it_is(site: Site) -> None:
    assert site.get("/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    clusters = site.get("/v1/metadata/id")[1]["scope"]["clusters"]
    assert clusters == {"kafka-cluster": "moldau", "schema-registry-cluster": "schema-registry"}
    assert site.get("/v1/metadata/version")[1]["version"].startswith("8.")
    assert site.get("/v1/metadata/deployment") == (200, {"attributes": []})
    assert site.get("/healthz")[1]["healthy"] is True
    assert site.get("/healthz")[1]["leader"] == "http://localhost:8081", "the leader names itself"


def test_requests_are_counted(site: Site) -> None:
    site.register("s", PERSON)
    site.get("/subjects/s/versions/9")
    text = site.http.get("/metrics").text
    path = 'path="/subjects/{subject}/versions/{version}"'
    assert f'moldau_registry_http_requests_total{{method="GET",{path},status="404"}} 1' in text
    assert "moldau_registry_subjects 1" in text
    assert "moldau_registry_is_leader 1" in text


def test_the_description_names_every_endpoint(site: Site) -> None:
    document = site.http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    paths = document["paths"]
    assert "409" in paths["/subjects/{subject}/versions"]["post"]["responses"]
    assert "/contexts/{context}/subjects/{subject}/versions" in paths
    ids = [operation["operationId"] for path in paths.values() for operation in path.values()]
    assert len(set(ids)) == len(ids)
