"""The host starts, watches, restarts and stops pipelines, each for itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from tests.unit.pipeline.runtime.hosting.fake_pipelines import KIND, FakeBuilder, fake_spec

from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.host import PipelineHost, PipelineSpec, RetryPauses, UnknownPipelineError

PATIENCE_S = 20.0


@pytest.fixture
def builder() -> FakeBuilder:
    return FakeBuilder()


@pytest.fixture
def host(builder: FakeBuilder) -> Iterator[PipelineHost]:
    with closing(PipelineHost({KIND: builder}, pauses=RetryPauses(first_s=0.01), now_ms=lambda: 7)) as host:
        yield host


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.002)


def state_of(host: PipelineHost, name: str) -> str:
    return str(host.status(name)["state"])


def test_a_pipeline_runs_and_ends(host: PipelineHost, builder: FakeBuilder) -> None:
    host.put(fake_spec("a", topic="orders"))
    wait_until(lambda: state_of(host, "a") == "RUNNING")
    [status] = host.statuses()
    assert status["definition"] == {"topic": "orders"}
    assert host.explain("a") == "a does nothing"
    assert host.remove("a")
    assert builder.built[0].states.state.is_final
    assert host.statuses() == []
    assert builder.deleted == []


def test_the_same_pipeline_again_changes_nothing(host: PipelineHost, builder: FakeBuilder) -> None:
    for _ in range(3):
        host.put(fake_spec("a", x=1))
    wait_until(lambda: state_of(host, "a") == "RUNNING")
    assert len(builder.built) == 1


def test_a_changed_pipeline_replaces_the_old_one(host: PipelineHost, builder: FakeBuilder) -> None:
    host.put(fake_spec("a", x=1))
    wait_until(lambda: state_of(host, "a") == "RUNNING")
    host.put(fake_spec("a", x=2))
    wait_until(lambda: len(builder.built) == 2 and state_of(host, "a") == "RUNNING")
    assert builder.built[0].states.state.is_final
    assert host.status("a")["definition"] == {"x": 2}


def test_a_failed_pipeline_is_started_again_and_tells_why(host: PipelineHost, builder: FakeBuilder) -> None:
    host.put(fake_spec("a"))
    host.put(fake_spec("b"))
    wait_until(lambda: state_of(host, "a") == state_of(host, "b") == "RUNNING")
    next(one for one in builder.built if one.spec.name == "a").fail("disk full")
    wait_until(lambda: host.status("a")["restarts"] == 1 and state_of(host, "a") == "RUNNING")
    assert host.status("a")["failures"] == [{"timestampMs": 7, "message": "disk full"}]
    assert host.status("b")["restarts"] == 0


@pytest.mark.parametrize(
    ("what", "message"), [("fails_to_start", "topic orders does not exist"), ("cannot_be_built", "no such column")]
)
def test_a_pipeline_that_cannot_start_is_tried_again(host: PipelineHost, what: str, message: str) -> None:
    host.put(fake_spec("a", **{what: True}))
    wait_until(lambda: host.status("a")["restarts"] >= 2)
    assert message in host.status("a")["failures"][0]["message"]
    assert host.remove("a")


def test_a_paused_pipeline_is_not_built_until_it_resumes(host: PipelineHost, builder: FakeBuilder) -> None:
    host.put(fake_spec("a"))
    wait_until(lambda: state_of(host, "a") == "RUNNING")
    host.put(fake_spec("a", is_paused=True))
    assert state_of(host, "a") == "PAUSED"
    assert builder.built[0].states.state.is_final
    host.put(fake_spec("a"))
    wait_until(lambda: state_of(host, "a") == "RUNNING")
    assert len(builder.built) == 2


def test_state_is_deleted_when_asked(host: PipelineHost, builder: FakeBuilder) -> None:
    host.put(fake_spec("a"))
    assert host.remove("a", delete_state=True)
    assert builder.deleted == ["a"]


def test_what_is_not_there(host: PipelineHost) -> None:
    assert not host.remove("a")
    with pytest.raises(UnknownPipelineError, match="no pipeline 'a'"):
        host.status("a")
    with pytest.raises(UnknownPipelineError, match="kind 'other'"):
        host.put(PipelineSpec(name="a", kind="other", definition={}))
    host.put(fake_spec("p", is_paused=True))
    with pytest.raises(MoldauError, match="has not started yet"):
        host.explain("p")


def test_the_end_of_the_host_is_the_end_of_all(host: PipelineHost, builder: FakeBuilder) -> None:
    for name in "abc":
        host.put(fake_spec(name))
    wait_until(lambda: all(state_of(host, name) == "RUNNING" for name in "abc"))
    host.close()
    assert all(one.states.state.is_final for one in builder.built)
