from __future__ import annotations

from moldau.connect.worker.config_state import ConfigState, RestartRequest, Target, TaskId

CONFIG = {"connector.class": "X"}


def with_tasks(count: int) -> ConfigState:
    state = ConfigState()
    state.apply("connector-c", {"properties": CONFIG})
    for number in range(count):
        state.apply(f"task-c-{number}", {"properties": {"n": str(number)}})
    return state


def test_tasks_count_when_they_are_committed_all_at_once() -> None:
    state = with_tasks(2)
    assert state.task_ids() == set()
    state.apply("commit-c", {"tasks": 2})
    assert state.task_ids() == {TaskId("c", 0), TaskId("c", 1)}
    assert state.tasks["c"] == ({"n": "0"}, {"n": "1"})
    assert state.applied["c"] == CONFIG


def test_a_commit_whose_tasks_were_compacted_away_does_not_count() -> None:
    state = ConfigState()
    state.apply("connector-c", {"properties": CONFIG})
    state.apply("task-c-1", {"properties": {}})
    state.apply("commit-c", {"tasks": 2})
    assert state.task_ids() == set()


def test_tasks_belong_to_the_configuration_they_were_committed_with() -> None:
    state = with_tasks(1)
    state.apply("commit-c", {"tasks": 1})
    state.apply("connector-c", {"properties": {"connector.class": "Y"}})
    assert state.applied["c"] == CONFIG
    state.apply("commit-c", {"tasks": 1})
    assert state.applied["c"] == {"connector.class": "Y"}


def test_a_deleted_connector_leaves_nothing() -> None:
    state = with_tasks(1)
    state.apply("commit-c", {"tasks": 1})
    state.apply("target-state-c", {"state": "PAUSED", "state.v2": "STOPPED"})
    state.apply("connector-c", None)
    assert (state.configs, state.tasks, state.targets, state.task_ids()) == ({}, {}, {}, set())


def test_a_stopped_connector_has_no_tasks_to_run() -> None:
    state = with_tasks(1)
    state.apply("commit-c", {"tasks": 1})
    state.apply("target-state-c", {"state": "PAUSED", "state.v2": "STOPPED"})
    assert state.target("c") is Target.STOPPED
    assert state.task_ids() == set()


def test_old_workers_know_no_second_field() -> None:
    state = ConfigState()
    state.apply("target-state-c", {"state": "PAUSED"})
    assert state.target("c") is Target.PAUSED


def test_a_name_may_hold_dashes_and_numbers() -> None:
    state = ConfigState()
    state.apply("connector-a-1", {"properties": CONFIG})
    state.apply("task-a-1-0", {"properties": {}})
    state.apply("commit-a-1", {"tasks": 1})
    assert state.task_ids() == {TaskId("a-1", 0)}


def test_a_restart_is_told_and_nothing_else() -> None:
    state = with_tasks(1)
    change = state.apply("restart-connector-c", {"include-tasks": True, "only-failed": False})
    assert change is not None
    assert change.value == RestartRequest("c", includes_tasks=True, only_failed=False)
    assert state.apply("session-key", {"key": "x"}) is None
