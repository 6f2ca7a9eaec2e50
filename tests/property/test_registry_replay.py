"""Whatever is asked of a registry: replaying its records, whole or compacted, gives the state it has."""

from __future__ import annotations

import json
import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from moldau.registry.app import build_app
from moldau.registry.entities import SchemaVersion
from moldau.registry.leadership import SoleLeadership
from moldau.registry.records import decode
from moldau.registry.registry import DEEPEST_RECURSION, Registry
from moldau.registry.settings import RegistrySettings
from moldau.registry.state import State
from moldau.registry.store import MemoryStore

# The first registry of a process raises the limit; Hypothesis does not want that to happen within a test.
sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST_RECURSION))

SUBJECTS = st.sampled_from(["a", "b", ":.lab:a", ":.lab:b"])
PERSON = {"type": "record", "name": "R", "fields": []}
SCHEMAS = st.sampled_from(
    ['"string"', '"int"', json.dumps(PERSON), json.dumps({**PERSON, "doc": "x"}), json.dumps({**PERSON, "name": "S"})]
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, Any]:
    subject = draw(SUBJECTS)
    kind = draw(st.sampled_from(["register"] * 5 + ["delete", "purge", "drop", "erase", "config", "mode", "import"]))
    version = draw(st.sampled_from(["latest", "1", "2", "3"]))
    match kind:
        case "register":
            fields = draw(st.sampled_from([{}, {"metadata": {"properties": {"k": "v"}}}, {"id": 50, "version": 9}]))
            return "POST", f"/subjects/{subject}/versions", {"schema": draw(SCHEMAS), **fields}
        case "delete":
            return "DELETE", f"/subjects/{subject}", None
        case "purge":
            return "DELETE", f"/subjects/{subject}?permanent=true", None
        case "drop":
            return "DELETE", f"/subjects/{subject}/versions/{version}", None
        case "erase":
            return "DELETE", f"/subjects/{subject}/versions/{version}?permanent=true", None
        case "config":
            method = draw(st.sampled_from(["PUT", "DELETE"]))
            return method, f"/config/{subject}", {"compatibility": "NONE"} if method == "PUT" else None
        case "mode":
            method = draw(st.sampled_from(["PUT", "DELETE"]))
            return method, f"/mode/{subject}", {"mode": "READWRITE"} if method == "PUT" else None
    return "PUT", f"/mode/{subject}?force=true", {"mode": "IMPORT"}


def seen(state: State) -> tuple[Any, ...]:
    """All that can be asked of a state; only the highest id may be forgotten with the records that had it."""
    versions = list(state.all_versions())
    by_id = {
        (context, schema_id): [(user.subject, user.version) for user in state.users_of_id(context, schema_id)]
        for context in state.contexts()
        for schema_id in range(60)
    }
    return versions, {key: sorted(users) for key, users in by_id.items()}, state.configs, state.modes, state.contexts()


def replayed(log: list[tuple[bytes, bytes | None]]) -> State:
    state = State()
    for key, value in log:
        record = decode(key, value)
        assert record is not None
        assert state.apply(record) is None
    return state


def compacted(log: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    last = {key: position for position, (key, _) in enumerate(log)}
    return [entry for position, entry in enumerate(log) if last[entry[0]] == position]


@settings(max_examples=60, deadline=None)
@given(st.lists(calls(), max_size=30))
def test_replaying_the_topic_gives_the_live_state(requests: list[tuple[str, str, Any]]) -> None:
    store = MemoryStore()
    registry = Registry(RegistrySettings.of({"schema.compatibility.level": "none"}), store, SoleLeadership())
    client = TestClient(build_app(registry))
    try:
        for method, path, document in requests:
            assert client.request(method, path, json=document).status_code < 500
    finally:
        registry.close()
    assert seen(replayed(store.log)) == seen(store.state)
    assert seen(replayed(compacted(store.log))) == seen(store.state)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@given(TEXTS, st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1), TEXTS, st.booleans())
def test_a_schema_survives_its_record(subject: str, version: int, schema_id: int, text: str, is_deleted: bool) -> None:
    from moldau.registry.records import Record, SchemaKey, encode_key, encode_value

    schema = SchemaVersion(subject, version, schema_id, "JSON", text, is_deleted=is_deleted)
    record = Record(SchemaKey(subject, version), schema)
    assert decode(encode_key(record.key), encode_value(record)) == record
