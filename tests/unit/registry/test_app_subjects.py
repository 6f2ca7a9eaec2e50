"""Subjects and versions through the app: what is registered, found, listed and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.registry.sites import PERSON, PERSON_WITH_HOBBY, PERSON_WITH_NAME, Site

NESTED = {"type": "record", "name": "Outer", "fields": [{"name": "p", "type": "Person"}]}
REFERENCE = {"name": "Person", "subject": "person", "version": 1}


def test_a_schema_gets_an_id_and_a_version_and_keeps_both(site: Site) -> None:
    first = site.register("s", PERSON)
    assert (first["id"], first["version"], first["schemaType"], first["deleted"]) == (1, 1, "AVRO", False)
    assert json.loads(first["schema"]) == PERSON
    assert site.register("s", PERSON) == first
    assert len(site.store.log) == 1, "what is known is not written again"


def test_the_same_text_in_other_spacing_is_the_same_schema(site: Site) -> None:
    site.register("s", PERSON)
    assert site.register("s", json.dumps(PERSON, indent=4))["version"] == 1


def test_a_schema_has_one_id_under_all_subjects_of_a_context(site: Site) -> None:
    site.register("other", PERSON_WITH_HOBBY)
    assert site.register("a", PERSON)["id"] == 2
    assert site.register("b", PERSON)["id"] == 2
    assert site.get("/schemas/ids/2/subjects") == (200, ["a", "b"])
    assert site.get("/schemas/ids/2/versions") == (
        200,
        [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}],
    )


def test_a_version_is_told_as_a_whole(site: Site) -> None:
    registered = site.register("s", PERSON)
    status, found = site.get("/subjects/s/versions/1")
    assert status == 200
    assert list(found) == ["subject", "version", "id", "guid", "schemaType", "schema", "ts", "deleted"]
    assert found == {"subject": "s", **registered}
    assert site.get("/subjects/s/versions/latest")[1] == found
    assert site.get("/subjects/s/versions/LATEST")[1] == found
    assert site.get("/subjects/s/versions/-1")[1] == found


def test_a_schema_is_found_by_its_id_and_its_guid(site: Site) -> None:
    guid = site.register("s", PERSON)["guid"]
    status, found = site.get("/schemas/ids/1")
    assert (status, found["subject"], found["version"], found["guid"]) == (200, "s", 1, guid)
    assert "id" not in found
    assert site.get("/schemas/ids/1?fetchMaxId=true")[1]["maxId"] == 1
    assert site.get(f"/schemas/guids/{guid}")[1]["schema"] == found["schema"]
    assert site.get(f"/schemas/guids/{guid}/ids") == (200, [{"context": ".", "id": 1}])
    assert site.get("/schemas/guids/nonsense") == (404, 40403)


def test_the_text_alone_is_given_as_it_is(site: Site) -> None:
    site.register("s", '{"type": "string"}')
    for path in ("/schemas/ids/1/schema", "/subjects/s/versions/1/schema"):
        answer = site.http.get(path)
        assert answer.text == '"string"'
        assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/subjects/none/versions", 40401),
        ("/subjects/none/versions/1", 40401),
        ("/subjects/none/versions/latest", 40401),
        ("/subjects/s/versions/2", 40402),
        ("/subjects/s/versions/2147483647", 40402),
        ("/subjects/s/versions/0", 42202),
        ("/subjects/s/versions/-2", 42202),
        ("/subjects/s/versions/2147483648", 42202),
        ("/subjects/s/versions/one", 42202),
        ("/subjects/s/versions/%D9%A1", 42202),
        ("/subjects/none/versions/1/schema", 40401),
        ("/subjects/s/versions/9/referencedby", 40402),
        ("/subjects/none/metadata", 40401),
        ("/schemas/ids/7", 40403),
        ("/schemas/ids/-7", 40403),
        ("/schemas/ids/7/schema", 40403),
        ("/schemas/ids/7/subjects", 40403),
        ("/schemas/ids/7/versions", 40403),
        ("/schemas/guids/00000000-0000-0000-0000-000000000000", 40403),
        ("/schemas/ids/abc", 404),
        ("/config/s", 40408),
        ("/mode/s", 40409),
        ("/nothing", 404),
        ("/subjects/s/nothing", 404),
    ],
)
def test_what_is_not_there_has_its_number(site: Site, path: str, code: int) -> None:
    site.register("s", PERSON)
    assert site.get(path) == (int(str(code)[:3]), code)


@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"schema": ""}, 42201),
        ({}, 42201),
        ({"schema": "   "}, 42201),
        ({"schema": "nonsense"}, 42201),
        ({"schema": '{"type":"record"}'}, 42201),
        ({"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'}, 42201),
        ({"schema": '"string"', "schemaType": "YAML"}, 42201),
        ({"schema": '"string"', "references": [{"name": "n", "subject": "none", "version": 1}]}, 42201),
        ({"schema": '"string"', "references": [{"name": "n", "subject": "none", "version": -1}]}, 42201),
        ({"schema": '"string"', "references": [{"name": "n"}]}, 422),
        ({"schema": '"string"', "version": 5}, 42201),
        ({"schema": '"string"', "id": 5}, 42205),
        ({"schema": 5}, 422),
        ({"schema": '"string"', "version": "one"}, 422),
        ({"schema": '"string"', "version": 2**31}, 422),
        ({"schema": '"string"', "metadata": 5}, 422),
        ({"schema": '"string"', "ruleSet": {"domainRules": [{"type": "CEL"}]}}, 42210),
        ({"schema": '"string"', "ruleSet": {"domainRules": [{"name": "r", "type": "CEL", "mode": "UPGRADE"}]}}, 42210),
        ([], 422),
        ("text", 422),
        (None, 422),
    ],
)
def test_a_request_that_cannot_be_done_has_its_number_and_changes_nothing(
    site: Site, request_fields: Any, code: int
) -> None:
    assert site.call("POST", "/subjects/s/versions", request_fields) == (int(str(code)[:3]), code)
    assert site.store.log == []


@pytest.mark.parametrize("subject", ["__GLOBAL", "__EMPTY", "a%00b", "a%0Ab", ":.__GLOBAL:s"])
def test_subjects_that_could_not_be_kept_are_refused(site: Site, subject: str) -> None:
    assert site.post(f"/subjects/{subject}/versions", PERSON) == (422, 42208)


def test_a_subject_may_hold_slashes_and_anything_else_that_is_text(site: Site) -> None:
    site.register("a%2Fb%20c%3A%C3%BC%25", PERSON)
    assert site.get("/subjects") == (200, ["a/b c:ü%"])
    assert site.get("/subjects/a%2Fb%20c%3A%C3%BC%25/versions") == (200, [1])
    assert site.get("/subjects/a/b") == (404, 404)
    assert site.get("/subjects/%FF/versions") == (400, 400)


def test_an_incompatible_schema_is_refused_with_reasons(site: Site, old_site: Site) -> None:
    for one, code in ((site, 40901), (old_site, 409)):
        one.register("s", PERSON)
        answer = one.http.post("/subjects/s/versions", json={"schema": json.dumps(PERSON_WITH_NAME)})
        assert (answer.status_code, answer.json()["error_code"]) == (409, code)
        message = answer.json()["message"]
        assert message.startswith("Schema being registered is incompatible")
        assert '"s"' in message
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in message.partition("details: [")[2]
        assert one.get("/subjects/s/versions") == (200, [1])


def test_force_skips_the_check(site: Site) -> None:
    site.register("s", PERSON)
    assert site.post("/subjects/s/versions?force=true", PERSON_WITH_NAME)[1]["version"] == 2


def test_looking_up_finds_the_version(site: Site) -> None:
    site.register("s", PERSON)
    registered = site.register("s", PERSON_WITH_HOBBY)
    assert site.post("/subjects/s", PERSON_WITH_HOBBY) == (200, {"subject": "s", **registered})
    assert site.post("/subjects/s", PERSON_WITH_NAME) == (404, 40403)
    assert site.post("/subjects/none", PERSON) == (404, 40401)
    assert site.post("/subjects/s", "nonsense") == (422, 42201)


def test_a_schema_may_build_on_others(site: Site) -> None:
    site.register("person", PERSON)
    outer = site.register("outer", NESTED, references=[REFERENCE])
    assert outer["references"] == [REFERENCE]
    assert site.get("/subjects/person/versions/1/referencedby") == (200, [outer["id"]])
    latest = site.register("late", NESTED, references=[{**REFERENCE, "version": -1}])
    assert latest["references"] == [REFERENCE], "latest is written down as a number"
    assert latest["id"] == outer["id"]
    resolved = json.loads(site.get("/schemas/ids/2?format=resolved")[1]["schema"])
    assert resolved["fields"][0]["type"]["name"] == "Person"


def test_what_others_build_on_cannot_be_deleted(site: Site) -> None:
    site.register("person", PERSON)
    site.register("outer", NESTED, references=[REFERENCE])
    answer = site.http.delete("/subjects/person")
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42206)
    assert answer.json()["message"] == (
        "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=person,version=1}."
    )
    assert site.delete("/subjects/person/versions/1") == (422, 42206)
    assert site.delete("/subjects/outer") == (200, [1])
    assert site.delete("/subjects/person") == (200, [1])
    assert site.delete("/subjects/person?permanent=true") == (422, 42206), "the deleted one still refers to it"
    assert site.delete("/subjects/outer?permanent=true") == (200, [1])
    assert site.delete("/subjects/person?permanent=true") == (200, [1])


def test_a_subject_may_refer_to_itself_and_still_be_deleted(site: Site) -> None:
    site.put("/config", {"compatibility": "NONE"})
    site.register("s", PERSON)
    site.register("s", NESTED, references=[{**REFERENCE, "subject": "s"}])
    assert site.delete("/subjects/s") == (200, [1, 2])
    assert site.delete("/subjects/s?permanent=true") == (200, [1, 2])


def test_a_deleted_subject_is_hidden_and_its_ids_resolve(site: Site) -> None:
    site.register("s", PERSON)
    site.register("s", PERSON_WITH_HOBBY)
    assert site.delete("/subjects/s") == (200, [1, 2])
    assert site.get("/subjects") == (200, [])
    assert site.get("/subjects?deleted=true") == (200, ["s"])
    assert site.get("/subjects?deletedOnly=true") == (200, ["s"])
    assert site.get("/subjects/s/versions") == (404, 40401)
    assert site.get("/subjects/s/versions?deleted=true") == (200, [1, 2])
    assert site.get("/subjects/s/versions?deletedAsNegative=true") == (200, [-1, -2])
    assert site.get("/subjects/s/versions/latest") == (404, 40401)
    assert site.get("/subjects/s/versions/1?deleted=true")[1]["deleted"] is True
    assert site.get("/schemas/ids/1")[0] == 200
    assert site.get("/schemas/ids/1/subjects") == (200, [])
    assert site.get("/schemas/ids/1/subjects?deleted=true") == (200, ["s"])
    assert site.post("/subjects/s", PERSON) == (404, 40401)
    assert site.post("/subjects/s?deleted=true", PERSON)[1]["version"] == 1


def test_deletes_have_an_order(site: Site) -> None:
    assert site.delete("/subjects/s") == (404, 40401)
    assert site.delete("/subjects/s?permanent=true") == (404, 40401)
    site.register("s", PERSON)
    assert site.delete("/subjects/s?permanent=true") == (404, 40405)
    assert site.delete("/subjects/s") == (200, [1])
    assert site.delete("/subjects/s") == (404, 40404)
    assert site.delete("/subjects/s?permanent=true") == (200, [1])
    assert site.get("/schemas/ids/1") == (404, 40403)
    assert site.get("/subjects?deleted=true") == (200, [])


def test_deletes_of_versions_have_an_order(site: Site) -> None:
    assert site.delete("/subjects/s/versions/1") == (404, 40401)
    site.register("s", PERSON)
    site.register("s", PERSON_WITH_HOBBY)
    assert site.delete("/subjects/s/versions/9") == (404, 40402)
    assert site.delete("/subjects/s/versions/0") == (422, 42202)
    assert site.delete("/subjects/s/versions/1?permanent=true") == (404, 40407)
    assert site.delete("/subjects/s/versions/latest") == (200, 2)
    assert site.delete("/subjects/s/versions/2") == (404, 40406)
    assert site.get("/subjects/s/versions") == (200, [1])
    assert site.delete("/subjects/s/versions/2?permanent=true") == (200, 2)
    assert site.get("/subjects/s/versions?deleted=true") == (200, [1])


def test_version_numbers_stay_taken_until_all_are_gone_for_good(site: Site) -> None:
    site.register("s", PERSON)
    site.register("s", PERSON_WITH_HOBBY)
    site.delete("/subjects/s")
    again = site.register("s", PERSON)
    assert (again["version"], again["id"]) == (3, 1), "the same schema, the same id, a new version"
    assert site.get("/subjects/s/versions?deleted=true") == (200, [2, 3]), "its old version made room"
    site.delete("/subjects/s")
    site.delete("/subjects/s?permanent=true")
    assert site.register("s", PERSON)["version"] == 1


def test_ids_are_never_given_twice(site: Site) -> None:
    site.register("s", PERSON)
    site.delete("/subjects/s")
    site.delete("/subjects/s?permanent=true")
    assert site.register("s", PERSON_WITH_HOBBY)["id"] == 2


def test_only_live_versions_count_for_compatibility(site: Site) -> None:
    site.register("s", PERSON)
    assert site.post("/subjects/s/versions", PERSON_WITH_NAME) == (409, 40901)
    site.delete("/subjects/s")
    assert site.register("s", PERSON_WITH_NAME)["version"] == 2


def test_an_empty_schema_takes_the_text_of_the_version_before(site: Site) -> None:
    site.register("s", PERSON)
    second = site.register("s", "", metadata={"properties": {"owner": "me"}})
    assert (second["version"], second["metadata"]) == (2, {"properties": {"owner": "me"}})
    assert json.loads(second["schema"]) == PERSON
    assert site.get("/subjects/s/metadata?key=owner&value=me")[1]["version"] == 2
    assert site.get("/subjects/s/metadata?key=owner&value=you") == (404, 40403)


def test_metadata_is_handed_down(site: Site) -> None:
    first = site.register("s", PERSON, metadata={"properties": {"owner": "me"}})
    assert site.register("s", PERSON) == first
    assert site.register("s", PERSON_WITH_HOBBY)["metadata"] == {"properties": {"owner": "me"}}


def test_a_given_version_must_be_the_next(site: Site) -> None:
    site.register("s", PERSON)
    assert site.post("/subjects/s/versions", PERSON_WITH_HOBBY, version=3) == (422, 42201)
    second = site.register("s", PERSON_WITH_HOBBY, version=2)
    assert (second["version"], second["metadata"]["properties"]) == (2, {"confluent:version": "2"})


def test_a_new_version_may_change_rules_only(site: Site) -> None:
    site.register("s", PERSON)
    rule = {"name": "r", "type": "CEL", "kind": "CONDITION", "mode": "WRITE", "expr": "true"}
    answer = site.call("POST", "/subjects/s/versions/1/tags", {"newVersion": 2, "ruleSet": {"domainRules": [rule]}})
    assert answer[0] == 200
    assert answer[1]["ruleSet"]["domainRules"][0]["name"] == "r"
    removed = site.call("POST", "/subjects/s/versions/2/tags", {"newVersion": 3, "rulesToRemove": ["r"]})
    assert removed[1]["version"] == 3
    assert "ruleSet" not in removed[1]


def test_lists_come_in_pages(site: Site) -> None:
    for name in "abcde":
        site.register(name, PERSON)
    assert site.get("/subjects?offset=1&limit=2") == (200, ["b", "c"])
    assert site.get("/subjects?offset=-1&limit=0") == (200, list("abcde"))
    assert site.get("/subjects?offset=9") == (200, [])
    assert site.get("/subjects?subjectPrefix=d") == (200, ["d"])
    assert site.get("/subjects?limit=x") == (404, 404)
    assert [one["subject"] for one in site.get("/schemas?offset=3&limit=5000")[1]] == ["d", "e"]


def test_all_schemas_are_listed(site: Site) -> None:
    site.register("a", PERSON)
    site.register("a", PERSON_WITH_HOBBY)
    site.register("b", PERSON)
    assert [(one["subject"], one["version"]) for one in site.get("/schemas")[1]] == [("a", 1), ("a", 2), ("b", 1)]
    assert [(one["subject"], one["version"]) for one in site.get("/schemas?latestOnly=true&subjectPrefix=a")[1]] == [
        ("a", 2)
    ]
    site.delete("/subjects/b")
    assert len(site.get("/schemas")[1]) == 2
    assert len(site.get("/schemas?deleted=true")[1]) == 3


def test_old_registries_said_less(old_site: Site) -> None:
    assert old_site.register("s", PERSON) == {"id": 1}
    assert old_site.get("/subjects/s/versions/1")[1].keys() == {"subject", "version", "id", "schema"}
    assert old_site.get("/schemas/ids/1")[1].keys() == {"schema"}
    assert old_site.post("/subjects/s", PERSON)[1].keys() == {"subject", "version", "id", "schema"}


def test_an_alias_leads_to_another_subject(site: Site) -> None:
    site.register("real", PERSON)
    site.put("/config/nick", {"alias": "real"})
    assert site.get("/subjects/nick/versions/1")[1]["subject"] == "real"
    assert site.register("nick", PERSON_WITH_HOBBY)["version"] == 2
    assert site.get("/schemas?aliases=true&latestOnly=true")[1][0]["aliases"] == ["nick"]
    assert site.get("/config/nick")[1] == {"alias": "real"}
