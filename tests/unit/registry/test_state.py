from __future__ import annotations

from dataclasses import replace

from moldau.registry.entities import SchemaReference, SchemaVersion
from moldau.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    ModeKey,
    NoopKey,
    Record,
    SchemaKey,
)
from moldau.registry.state import Refusal, State


def schema(subject: str = "s", version: int = 1, schema_id: int = 1, text: str = '"string"') -> SchemaVersion:
    return SchemaVersion(subject, version, schema_id, "AVRO", text)


def record(one: SchemaVersion) -> Record:
    return Record(SchemaKey(one.subject, one.version), one)


def state_of(*records: Record) -> State:
    state = State()
    assert state.apply_all(records) == []
    return state


def test_versions_are_in_order_however_they_came() -> None:
    state = state_of(record(schema(version=2, schema_id=2, text='"int"')), record(schema(version=1)))
    assert [one.version for one in state.versions("s")] == [1, 2]
    latest = state.latest("s")
    assert latest is not None
    assert latest.version == 2


def test_a_soft_delete_hides_versions_up_to_a_number_and_keeps_ids() -> None:
    state = state_of(
        record(schema(version=1)),
        record(schema(version=2, schema_id=2, text='"int"')),
        Record(DeleteSubjectKey("s"), 1),
    )
    assert [one.version for one in state.live_versions("s")] == [2]
    assert state.users_of_id(".", 1)[0].is_deleted


def test_a_tombstone_removes_a_version_and_its_id() -> None:
    state = state_of(record(schema()), Record(SchemaKey("s", 1)))
    assert state.subjects() == []
    assert state.users_of_id(".", 1) == []
    assert state.known_id(".", schema().identity) is None
    assert state.max_id(".") == 1, "an id is never given twice"


def test_a_record_that_reuses_an_id_for_another_schema_is_refused() -> None:
    state = state_of(record(schema("a")))
    stray = record(schema("b", text='"int"'))
    assert state.apply(stray) == Refusal(stray, None)
    assert state.subjects() == ["a"]


def test_the_same_schema_may_have_its_id_under_many_subjects() -> None:
    state = state_of(record(schema("a")), record(schema("b")))
    assert [one.subject for one in state.users_of_id(".", 1)] == ["a", "b"]


def test_each_context_counts_its_own_ids() -> None:
    state = state_of(record(schema("a", schema_id=5)), record(schema(":.lab:a", schema_id=1, text='"int"')))
    assert (state.max_id("."), state.max_id(".lab"), state.max_id(".none")) == (5, 1, 0)
    assert state.contexts() == [".", ".lab"]


def test_clearing_drops_what_was_soft_deleted() -> None:
    state = state_of(
        record(replace(schema("a"), is_deleted=True)), record(schema("b")), Record(ClearSubjectKey("a"), "a")
    )
    assert state.subjects() == ["b"]
    state.apply(Record(ClearSubjectKey(None), ""))
    assert state.subjects() == ["b"]


def test_settings_come_and_go() -> None:
    state = state_of(
        Record(ConfigKey(None), {"compatibilityLevel": "FULL"}),
        Record(ModeKey("s"), "READONLY"),
        Record(ContextKey(".lab"), ".lab"),
    )
    assert (state.configs, state.modes) == ({None: {"compatibilityLevel": "FULL"}}, {"s": "READONLY"})
    assert state.contexts() == [".", ".lab"]
    state.apply_all([Record(ConfigKey(None)), Record(ModeKey("s")), Record(ContextKey(".lab")), Record(NoopKey())])
    assert (state.configs, state.modes, state.contexts()) == ({}, {}, ["."])


def test_referrers_are_known_within_their_context() -> None:
    inner = schema("inner")
    outer = replace(schema("outer", schema_id=2, text='"int"'), references=(SchemaReference("n", "inner", 1),))
    state = state_of(record(inner), record(outer))
    assert state.referrers("inner", 1) == [outer]
    state.apply(Record(SchemaKey("outer", 1)))
    assert state.referrers("inner", 1) == []
    elsewhere = replace(outer, subject=":.lab:outer")
    state.apply(record(elsewhere))
    assert state.referrers("inner", 1) == []
    assert state.referrers(":.lab:inner", 1) == [elsewhere]


def test_the_generation_counts_changes_only() -> None:
    state = state_of(record(schema()))
    before = state.generation
    state.apply(Record(NoopKey()))
    assert state.generation == before
