from __future__ import annotations

import pytest

from moldau.ksql.statements.commands import Command, CommandError, CommandId
from moldau.ksql.statements.facts import Facts
from moldau.ksql.statements.state import ServerState

CREATE = "CREATE STREAM S (V INT) WITH (kafka_topic='t', format='JSON');"


def command(text: str, name: CommandId | None = None, **members: object) -> Command:
    facts = Facts({"t": 1, "X": 1})
    return Command(id=name or CommandId.of_source("stream", "S", "create"), statement=text, facts=facts, **members)  # type: ignore[arg-type]


def test_a_command_survives_its_record() -> None:
    written = command(CREATE, properties={"a": 1}, start_offsets={"t": {"0": 5}})
    assert Command.of_record(written.key(), written.value()) == written


@pytest.mark.parametrize("record", [(b"x", b"{}"), (b"stream/S/create", b"["), (None, None)])
def test_records_that_are_no_commands(record: tuple[bytes | None, bytes | None]) -> None:
    with pytest.raises(CommandError):
        Command.of_record(*record)


def test_a_later_version_is_refused() -> None:
    with pytest.raises(CommandError, match="upgrade this server"):
        Command.of_record(b"stream/S/create", b'{"version": 99}')


def test_ids_may_contain_slashes() -> None:
    assert CommandId.parse("stream/`a/b`/create") == CommandId("stream", "`a/b`", "create")


def test_a_command_that_does_not_fit_changes_nothing() -> None:
    state = ServerState({})
    assert state.apply(command(CREATE)) is not None
    known = dict(state.catalogue.sources)
    assert state.apply(command(CREATE)) is None
    assert state.catalogue.sources == known
    assert state.statuses["stream/`S`/create"]["status"] == "ERROR"


def test_queries_live_until_they_are_terminated() -> None:
    state = ServerState({}, query_defaults={"auto.offset.reset": "earliest"})
    state.apply(command(CREATE))
    outcome = state.apply(command("CREATE STREAM X AS SELECT * FROM S;", CommandId.of_source("stream", "X", "create")))
    assert outcome is not None
    assert outcome.started is not None
    query_id = outcome.started.query_id
    assert state.queries[query_id].properties == {"auto.offset.reset": "earliest"}
    state.apply(command(f"PAUSE {query_id};", CommandId("pause", query_id, "execute")))
    assert state.queries[query_id].is_paused
    state.apply(command(f"TERMINATE {query_id};", CommandId("terminate", query_id, "execute")))
    assert state.queries == {}


def test_system_properties_hold_for_queries_after_them() -> None:
    state = ServerState({})
    alter = "ALTER SYSTEM 'auto.offset.reset'='earliest';"
    outcome = state.apply(command(alter, CommandId("cluster", "auto.offset.reset", "alter")))
    assert outcome is not None
    assert outcome.message == "System property auto.offset.reset was set to earliest."
    assert state.with_defaults({"x": 1}) == {"auto.offset.reset": "earliest", "x": 1}
