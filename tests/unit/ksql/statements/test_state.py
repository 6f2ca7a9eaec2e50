from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.core.errors import MoldauError
from moldau.ksql.pipelines import hosted_query, pipeline_spec
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.statements.commands import Command
from moldau.ksql.statements.facts import Facts
from moldau.ksql.statements.state import ServerState, command_id
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.runtime.hosting.host import PipelineSpec

SETTINGS = KsqlSettings.of({"ksql.streams.state.dir": "/nowhere"})


def state_after(*texts: str) -> ServerState:
    state = ServerState(SETTINGS.statement_settings)
    for text in texts:
        [statement] = parse(text)
        facts = Facts(dict.fromkeys(("t", "u", "A", "B", "C", "D"), 1))
        command = Command(id=command_id(statement), statement=text, facts=facts)
        assert state.apply(command) is not None, state.statuses[str(command.id)]
    return state


def history(state: ServerState, query_id: str) -> list[str]:
    return [one.command.statement for one in state.queries[query_id].history]


def is_planned_again(state: ServerState, query_id: str) -> bool:
    query = state.queries[query_id].query
    _, hosted = hosted_query(pipeline_spec(state.queries[query_id], SETTINGS))
    nodes, again = query.topology.describe(), hosted.query.topology.describe()
    return nodes == again and replace(hosted.query, topology=query.topology) == query


S = "CREATE STREAM S (V INT) WITH (kafka_topic='t', format='JSON');"
OTHER = "CREATE STREAM OTHER (W INT) WITH (kafka_topic='u', format='JSON');"


def test_a_query_is_defined_by_the_commands_that_it_depends_on() -> None:
    a, b = "CREATE STREAM A AS SELECT * FROM S;", "CREATE STREAM B AS SELECT * FROM OTHER;"
    c = "CREATE STREAM C AS SELECT V + 1 AS X FROM A;"
    state = state_after(S, OTHER, a, b, c)
    assert history(state, "CSAS_C_2") == [S, a, c]
    assert is_planned_again(state, "CSAS_C_2")


def test_types_settings_and_changes_of_sources_belong_to_the_definition() -> None:
    made = "CREATE TYPE P AS STRUCT<X INT>;"
    typed = "CREATE STREAM T (V P) WITH (kafka_topic='t', format='JSON');"
    alter = "ALTER STREAM T ADD COLUMN W INT;"
    system = "ALTER SYSTEM 'ksql.output.topic.name.prefix'='x_';"
    a = "CREATE STREAM A AS SELECT V->X, W FROM T;"
    state = state_after(made, OTHER, typed, alter, "DROP TYPE P;", system, a)
    assert history(state, "CSAS_A_0") == [made, typed, alter, "DROP TYPE P;", system, a]
    assert is_planned_again(state, "CSAS_A_0")


def test_a_replaced_query_is_planned_again_with_what_it_replaces() -> None:
    a, again = "CREATE STREAM A AS SELECT V FROM S;", "CREATE OR REPLACE STREAM A AS SELECT V, V + 1 AS W FROM S;"
    state = state_after(S, a, again)
    assert history(state, "CSAS_A_0") == [S, a, again]
    assert is_planned_again(state, "CSAS_A_0")


def test_a_source_that_was_dropped_and_made_again_may_meet_what_was_made_of_the_first() -> None:
    a = "CREATE STREAM A AS SELECT V FROM S;"
    second = "CREATE STREAM S (V STRING, K INT KEY) WITH (kafka_topic='u', format='JSON');"
    joined = "CREATE STREAM B AS SELECT * FROM S JOIN A WITHIN 1 HOUR ON K = A.V;"
    state = state_after(S, a, "TERMINATE CSAS_A_0;", "DROP STREAM S;", second, joined)
    assert history(state, "CSAS_B_1") == [S, a, second, joined]
    assert is_planned_again(state, "CSAS_B_1")


def test_inserting_queries_know_their_target() -> None:
    a, insert = "CREATE STREAM A AS SELECT V FROM S;", "INSERT INTO A SELECT W AS V FROM OTHER;"
    state = state_after(S, OTHER, a, insert)
    assert history(state, "INSERTQUERY_1") == [S, OTHER, a, insert]
    assert is_planned_again(state, "INSERTQUERY_1")


def test_histories_stay_short_when_there_are_many_statements() -> None:
    many = [f"CREATE STREAM X{n} (V INT) WITH (kafka_topic='t', format='JSON');" for n in range(500)]
    state = state_after(*many, "CREATE STREAM A AS SELECT V FROM X499;")
    assert len(state.queries["CSAS_A_0"].history) == 2


def test_a_history_that_does_not_fit_says_so() -> None:
    state = state_after(S, "CREATE STREAM A AS SELECT V FROM S;")
    definition = dict(pipeline_spec(state.queries["CSAS_A_0"], SETTINGS).definition)
    definition["history"] = definition["history"][1:]
    with pytest.raises(MoldauError, match=r"CSAS_A_0 cannot be planned again: .*Source `S` does not exist"):
        hosted_query(PipelineSpec(name="x", kind="ksql", definition=definition))
