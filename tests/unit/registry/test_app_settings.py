"""Configs, modes, contexts and compatibility tests through the app."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.registry.sites import PERSON, PERSON_WITH_HOBBY, PERSON_WITH_NAME, Site

LEVELS = ["NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"]


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_can_be_set(site: Site, level: str) -> None:
    assert site.put("/config", {"compatibility": level.lower()}) == (200, {"compatibility": level})
    assert site.get("/config") == (200, {"compatibilityLevel": level})
    assert site.put("/config/s", {"compatibility": level}) == (200, {"compatibility": level})
    assert site.get("/config/s") == (200, {"compatibilityLevel": level})


def test_the_default_level_is_backward_and_comes_back(site: Site) -> None:
    assert site.get("/config") == (200, {"compatibilityLevel": "BACKWARD"})
    site.put("/config", {"compatibility": "FULL"})
    assert site.delete("/config") == (200, {"compatibilityLevel": "FULL"})
    assert site.get("/config") == (200, {"compatibilityLevel": "BACKWARD"})


def test_a_subject_without_a_config_has_the_global_one(site: Site) -> None:
    assert site.get("/config/s") == (404, 40408)
    assert site.get("/config/s?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})
    site.put("/config/s", {"compatibility": "NONE"})
    assert site.delete("/config/s") == (200, {"compatibilityLevel": "NONE"})
    assert site.delete("/config/s") == (404, 40401)


def test_settings_are_changed_one_by_one(site: Site) -> None:
    site.put("/config/s", {"compatibility": "FULL", "normalize": True})
    site.put("/config/s", {"compatibilityGroup": "major"})
    assert site.get("/config/s")[1] == {"normalize": True, "compatibilityLevel": "FULL", "compatibilityGroup": "major"}
    assert site.put("/config/s", {"normalize": None}) == (200, {"compatibility": "FULL", "compatibilityGroup": "major"})


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"compatibility": "SIDEWAYS"}, 42203),
        ({"compatibility": 5}, 42203),
        ({"normalize": "yes"}, 422),
        ({"compatibilityPolicy": "SOME"}, 422),
        ({"defaultMetadata": []}, 422),
        ({"defaultRuleSet": {"domainRules": [{"name": "1"}]}}, 42210),
        ([], 422),
    ],
)
def test_configs_that_make_no_sense_are_refused(site: Site, document: Any, code: int) -> None:
    for path in ("/config", "/config/s"):
        assert site.put(path, document) == (422, code)
    assert site.store.log == []


def test_a_reserved_name_has_no_config(site: Site) -> None:
    assert site.put("/config/__GLOBAL", {"compatibility": "FULL"}) == (422, 42208)


def test_a_normalizing_subject_puts_schemas_in_one_order(site: Site) -> None:
    site.put("/config/s", {"normalize": True})
    site.register("s", {"name": "Person", "type": "record", "fields": PERSON["fields"]})
    assert site.register("s", PERSON)["version"] == 1


def test_defaults_and_overrides_complete_metadata(site: Site) -> None:
    site.put(
        "/config",
        {
            "defaultMetadata": {"properties": {"owner": "nobody", "team": "x"}},
            "overrideMetadata": {"properties": {"cluster": "prod"}},
        },
    )
    registered = site.register("s", PERSON, metadata={"properties": {"owner": "me"}})
    assert registered["metadata"]["properties"] == {"cluster": "prod", "owner": "me", "team": "x"}
    assert site.register("s", PERSON)["version"] == 1


def test_field_names_are_checked_on_request(site: Site) -> None:
    odd = '{"type":"object","properties":{"$$odd":{"type":"string"}}}'
    assert site.register("s", odd, schemaType="JSON")["id"] == 1
    site.put("/config/t", {"validateFields": True})
    assert site.post("/subjects/t/versions", odd, schemaType="JSON") == (422, 42201)


def test_reserved_names_stay_reserved(site: Site) -> None:
    site.put("/config/s", {"validateFields": True})
    reserved = {"metadata": {"properties": {"confluent:reserved": "hobby, age2"}}}
    site.register("s", PERSON, **reserved)
    assert site.post("/subjects/s/versions", PERSON_WITH_HOBBY) == (409, 40901), "its metadata is handed down"
    fewer = {"metadata": {"properties": {"confluent:reserved": "age2"}}}
    status, answer = site.post("/compatibility/subjects/s/versions?verbose=true", PERSON_WITH_HOBBY, **fewer)
    assert (status, answer["is_compatible"]) == (200, False)
    assert "hobby" in answer["messages"][0]
    assert answer["messages"][-1] == "{validateFields: 'true', compatibility: 'BACKWARD'}"


def test_only_versions_of_the_same_group_are_compared(site: Site) -> None:
    site.put("/config/s", {"compatibilityGroup": "major"})
    site.register("s", PERSON, metadata={"properties": {"major": "1"}})
    major_2 = {"metadata": {"properties": {"major": "2"}}}
    assert site.post("/subjects/s/versions", PERSON_WITH_NAME) == (409, 40901)
    assert site.register("s", PERSON_WITH_NAME, **major_2)["version"] == 2


# Modes


def test_modes_are_set_and_forgotten(site: Site) -> None:
    assert site.get("/mode") == (200, {"mode": "READWRITE"})
    assert site.put("/mode", {"mode": "readonly"}) == (200, {"mode": "READONLY"})
    assert site.get("/mode") == (200, {"mode": "READONLY"})
    assert site.get("/mode/s") == (404, 40409)
    assert site.get("/mode/s?defaultToGlobal=true") == (200, {"mode": "READONLY"})
    assert site.put("/mode/s", {"mode": "READWRITE"}) == (200, {"mode": "READWRITE"})
    assert site.delete("/mode/s") == (200, {"mode": "READWRITE"})
    assert site.delete("/mode/s") == (404, 40401)
    assert site.delete("/mode") == (200, {"mode": "READONLY"})
    assert site.get("/mode") == (200, {"mode": "READWRITE"})


@pytest.mark.parametrize(
    ("path", "document"),
    [("/mode", {"mode": "ASLEEP"}), ("/mode", {"mode": 5}), ("/mode", {}), ("/mode/s", {"mode": "FORWARD"})],
)
def test_modes_that_make_no_sense_are_refused(site: Site, path: str, document: Any) -> None:
    assert site.put(path, document) == (422, 42204)


def test_a_read_only_subject_refuses_all_changes(site: Site) -> None:
    site.register("s", PERSON)
    site.put("/mode/s", {"mode": "READONLY"})
    assert site.post("/subjects/s/versions", PERSON_WITH_HOBBY) == (422, 42205)
    assert site.delete("/subjects/s") == (422, 42205)
    assert site.delete("/subjects/s/versions/1") == (422, 42205)
    assert site.put("/config/s", {"compatibility": "FULL"}) == (422, 42205)
    assert site.register("t", PERSON)["id"] == 1


def test_an_overriding_mode_beats_those_below(site: Site) -> None:
    site.put("/mode/s", {"mode": "READWRITE"})
    site.put("/mode", {"mode": "READONLY"})
    assert site.register("s", PERSON)["id"] == 1
    site.put("/mode", {"mode": "READONLY_OVERRIDE"})
    assert site.post("/subjects/s/versions", PERSON_WITH_HOBBY) == (422, 42205)


def test_importing_chooses_ids_and_versions(site: Site) -> None:
    site.put("/mode/s", {"mode": "IMPORT"})
    assert site.post("/subjects/s/versions", PERSON) == (422, 42205), "an id must be given"
    imported = site.register("s", PERSON, id=100, version=7)
    assert (imported["id"], imported["version"]) == (100, 7)
    assert site.register("s", PERSON_WITH_NAME, id=101, version=3)["version"] == 3, "no compatibility check"
    assert site.post("/subjects/s/versions", PERSON_WITH_HOBBY, id=100) == (422, 42205), "the id is taken"
    assert site.post("/subjects/s/versions", PERSON, id=102) == (422, 42207)
    assert site.register("s", PERSON, id=100)["version"] == 7
    assert site.register("t", PERSON_WITH_HOBBY)["id"] == 102, "ids go on from the highest"


def test_importing_needs_an_empty_scope(site: Site) -> None:
    site.register("s", PERSON)
    assert site.put("/mode/s", {"mode": "IMPORT"}) == (422, 42205)
    assert site.put("/mode", {"mode": "IMPORT"}) == (422, 42205)
    assert site.put("/mode/s?force=true", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    site.put("/mode/s", {"mode": "READWRITE"})
    site.delete("/subjects/s")
    assert site.put("/mode/s", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert site.get("/subjects?deleted=true") == (200, []), "soft-deleted versions made way"
    assert any(b"CLEAR_SUBJECT" in key for key, _ in site.store.log)


def test_modes_of_all_subjects_go_at_once(site: Site) -> None:
    for name in ("a", "b"):
        site.put(f"/mode/{name}", {"mode": "READONLY"})
    site.put("/mode", {"mode": "READONLY"})
    assert site.delete("/mode?recursive=true") == (200, {"mode": "READONLY"})
    assert site.get("/mode/a") == (404, 40409)


def test_a_permanent_delete_takes_the_settings_along(site: Site) -> None:
    site.register("s", PERSON)
    site.put("/config/s", {"compatibility": "FULL"})
    site.put("/mode/s", {"mode": "READWRITE"})
    site.delete("/subjects/s")
    assert site.get("/config/s")[0] == 200
    site.delete("/subjects/s?permanent=true")
    assert site.get("/config/s") == (404, 40408)
    assert site.get("/mode/s") == (404, 40409)


# Contexts


def test_contexts_have_ids_of_their_own(site: Site) -> None:
    site.register("s", PERSON)
    assert site.register(":.lab:s", PERSON_WITH_HOBBY)["id"] == 1
    assert site.register(":.lab:t", PERSON)["id"] == 2
    assert site.get("/contexts") == (200, [".", ".lab"])
    assert site.get("/subjects") == (200, [":.lab:s", ":.lab:t", "s"])
    assert site.get("/subjects?subjectPrefix=:*:s") == (200, [":.lab:s", "s"])
    assert json.loads(site.get("/schemas/ids/1?subject=:.lab:")[1]["schema"]) == PERSON_WITH_HOBBY
    assert json.loads(site.get("/schemas/ids/1")[1]["schema"]) == PERSON


@pytest.mark.parametrize("context", [".lab", "lab", ":.lab:"])
def test_a_path_within_a_context_means_its_subjects(site: Site, context: str) -> None:
    base = f"/contexts/{context}"
    assert site.post(f"{base}/subjects/s/versions", PERSON)[1]["id"] == 1
    assert site.get(f"{base}/subjects") == (200, [":.lab:s"])
    assert site.get(f"{base}/subjects/s/versions/1")[1]["subject"] == ":.lab:s"
    assert site.get("/subjects/:.lab:s/versions") == (200, [1])
    assert site.get(f"{base}/schemas/ids/1")[1]["subject"] == ":.lab:s"
    assert site.get("/schemas/ids/1") == (404, 40403)
    assert site.put(f"{base}/config", {"compatibility": "NONE"}) == (200, {"compatibility": "NONE"})
    assert site.get(f"{base}/config") == (200, {"compatibilityLevel": "NONE"})
    assert site.get("/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert site.post(f"{base}/subjects/s/versions", PERSON_WITH_NAME)[1]["version"] == 2


def test_a_plain_subject_is_looked_for_in_all_contexts(site: Site) -> None:
    site.register(":.lab:s", PERSON)
    assert site.get("/subjects/s/versions/1")[1]["subject"] == ":.lab:s"
    assert site.post("/subjects/s", PERSON)[1]["subject"] == ":.lab:s"
    assert site.get("/schemas/ids/1?subject=s")[1]["subject"] == ":.lab:s"


def test_a_context_goes_when_it_is_empty(site: Site) -> None:
    site.register(":.lab:s", PERSON)
    assert site.delete("/contexts/.lab") == (422, 42211)
    site.delete("/subjects/:.lab:s")
    assert site.delete("/contexts/.lab") == (422, 42211)
    site.delete("/subjects/:.lab:s?permanent=true")
    assert site.delete("/contexts/.lab") == (204, None)
    assert site.get("/contexts") == (200, ["."])


def test_references_may_be_spelled_out(site: Site) -> None:
    site.register(":.lab:person", PERSON)
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "p", "type": "Person"}]}
    reference = {"name": "Person", "subject": "person", "version": 1}
    site.register(":.lab:outer", outer, references=[reference])
    assert site.get("/subjects/:.lab:outer/versions/1")[1]["references"] == [reference]
    qualified = site.get("/subjects/:.lab:outer/versions/1?referenceFormat=qualified")[1]
    assert qualified["references"] == [{**reference, "subject": ":.lab:person"}]


# Compatibility


def test_compatibility_is_tested_without_registering(site: Site) -> None:
    site.register("s", PERSON)
    path = "/compatibility/subjects/s/versions/latest"
    assert site.post(path, PERSON_WITH_HOBBY) == (200, {"is_compatible": True})
    assert site.post(path, PERSON_WITH_NAME) == (200, {"is_compatible": False})
    assert site.get("/subjects/s/versions") == (200, [1])


def test_reasons_are_told_on_request(site: Site) -> None:
    site.register("s", PERSON)
    status, answer = site.post("/compatibility/subjects/s/versions/1?verbose=true", PERSON_WITH_NAME)
    assert (status, answer["is_compatible"]) == (200, False)
    reasons, version, text, settings = answer["messages"]
    assert reasons.startswith("{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'")
    assert "surname" in reasons
    assert version == "{oldSchemaVersion: 1}"
    assert text.startswith('{oldSchema: \'{"type":"record"')
    assert settings == "{validateFields: 'false', compatibility: 'BACKWARD'}"


def test_compatibility_of_what_is_not_there(site: Site) -> None:
    assert site.post("/compatibility/subjects/s/versions/latest", PERSON) == (200, {"is_compatible": True})
    assert site.post("/compatibility/subjects/s/versions", PERSON) == (200, {"is_compatible": True})
    assert site.post("/compatibility/subjects/s/versions/1", PERSON) == (404, 40402)
    assert site.post("/compatibility/subjects/s/versions/0", PERSON) == (422, 42202)
    assert site.post("/compatibility/subjects/s/versions/latest", "nonsense") == (422, 42201)
    status, answer = site.post("/compatibility/subjects/s/versions/latest?verbose=true", "nonsense")
    assert (status, answer["is_compatible"], len(answer["messages"])) == (200, False, 1)


def test_transitive_levels_look_at_all_versions(site: Site) -> None:
    site.put("/config", {"compatibility": "NONE"})
    site.register("s", PERSON)
    site.register("s", {**PERSON, "fields": []})
    site.put("/config", {"compatibility": "FORWARD"})
    path = "/compatibility/subjects/s/versions"
    empty = {**PERSON, "fields": [], "doc": "later"}
    assert site.post(path, empty)[1]["is_compatible"] is True
    site.put("/config", {"compatibility": "FORWARD_TRANSITIVE"})
    status, answer = site.post(f"{path}?verbose=true", empty)
    assert (status, answer["is_compatible"]) == (200, False)
    assert "{oldSchemaVersion: 1}" in answer["messages"]


def test_another_type_is_never_compatible_unless_nothing_is_asked(site: Site) -> None:
    site.register("s", PERSON)
    other = {"schemaType": "JSON"}
    assert site.post("/subjects/s/versions", '{"type":"object"}', **other) == (409, 40901)
    site.put("/config/s", {"compatibility": "NONE"})
    assert site.register("s", '{"type":"object"}', **other)["schemaType"] == "JSON"
