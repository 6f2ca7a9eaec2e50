"""Who may register in a cluster of one broker, and when a session ends."""

from __future__ import annotations

import random
import uuid

import pytest

from moldau.controller.brokers import BrokerRegistration
from moldau.controller.image import Endpoint
from moldau.controller.registration import RegisteredBroker, Registrations
from moldau.core.errors import ErrorCode

SESSION_MS = 9000
CLUSTER = "cluster-a"


def new_point(registered: RegisteredBroker | None = None, now_ms: int = 0) -> Registrations:
    return Registrations(CLUSTER, registered, session_timeout_ms=SESSION_MS, now_ms=now_ms)


def broker(node_id: int = 0, *, log_dir: uuid.UUID | None = None, port: int = 9092) -> BrokerRegistration:
    endpoints = (Endpoint("PLAINTEXT", "", port),)
    return BrokerRegistration(node_id, uuid.uuid4(), endpoints, log_dirs=(log_dir or uuid.uuid4(),))


def register(
    point: Registrations, one: BrokerRegistration, now_ms: int = 0, cluster_id: str = CLUSTER
) -> RegisteredBroker | ErrorCode:
    verdict = point.judge(cluster_id, one, came_from="127.0.0.1", now_ms=now_ms)
    if isinstance(verdict, RegisteredBroker):
        point.accept(verdict, now_ms)
    return verdict


def serve(point: Registrations, now_ms: int) -> ErrorCode:
    assert point.registered is not None
    known = point.registered
    return point.heartbeat(
        known.broker.node_id, known.broker_epoch, want_fence=False, want_shut_down=False, now_ms=now_ms
    ).error


def test_a_broker_is_fenced_until_it_asks_to_serve() -> None:
    point = new_point()
    register(point, broker())
    assert not point.is_alive(0)
    assert serve(point, 10) is ErrorCode.NONE
    assert point.is_alive(10)
    assert not point.is_alive(11 + SESSION_MS)


def test_judging_changes_nothing() -> None:
    point = new_point()
    assert isinstance(point.judge(CLUSTER, broker(), came_from="127.0.0.1", now_ms=0), RegisteredBroker)
    assert point.registered is None
    assert not point.has_session(0)


@pytest.mark.parametrize("is_running", [True, False])
def test_a_second_broker_is_refused_whether_the_first_runs_or_not(is_running: bool) -> None:
    point = new_point()
    register(point, broker(0))
    later_ms = 10 if is_running else SESSION_MS * 100
    assert register(point, broker(1), later_ms) is ErrorCode.INVALID_REGISTRATION


def test_the_same_id_with_other_directories_waits_for_the_end_of_the_session() -> None:
    point = new_point()
    register(point, broker(0))
    twin = broker(0)
    assert register(point, twin, SESSION_MS) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert isinstance(register(point, twin, SESSION_MS + 1), RegisteredBroker)


def test_a_killed_broker_comes_back_at_once_with_its_directories() -> None:
    point, log_dir = new_point(), uuid.uuid4()
    first = register(point, broker(0, log_dir=log_dir))
    serve(point, 1)
    second = register(point, broker(0, log_dir=log_dir), 2)
    assert isinstance(first, RegisteredBroker)
    assert isinstance(second, RegisteredBroker)
    assert second.broker_epoch > first.broker_epoch
    assert not point.is_alive(3)
    stale = point.heartbeat(0, first.broker_epoch, want_fence=False, want_shut_down=False, now_ms=3)
    assert stale.error is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_said_goodbye_may_be_replaced_at_once() -> None:
    point = new_point()
    register(point, broker(0))
    reply = point.heartbeat(0, 0, want_fence=False, want_shut_down=True, now_ms=1)
    assert reply.should_shut_down
    assert not point.is_alive(1)
    assert isinstance(register(point, broker(0), 2), RegisteredBroker)


def test_the_same_process_may_register_again_with_its_real_port_and_goes_on_serving() -> None:
    point, one = new_point(), broker(0, port=0)
    register(point, one)
    serve(point, 1)
    again = register(point, one._replace(endpoints=(Endpoint("PLAINTEXT", "", 9092),)), 2)
    assert isinstance(again, RegisteredBroker)
    assert again.broker_epoch == 1
    assert point.is_alive(2)
    assert register(point, again.broker, 3) == again


def test_the_first_broker_brings_its_cluster_and_then_no_other_cluster_is_let_in() -> None:
    point, one = new_point(), broker(0)
    register(point, one, cluster_id="cluster-b")
    assert point.cluster_id == "cluster-b"
    assert register(point, one, SESSION_MS * 2, cluster_id=CLUSTER) is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_point_that_starts_again_knows_its_broker_and_gives_it_a_full_session() -> None:
    point, one = new_point(), broker(0)
    known = register(point, one)
    assert isinstance(known, RegisteredBroker)
    after = new_point(known, now_ms=50_000)
    assert not after.is_alive(50_000)
    assert register(after, broker(0), 50_000 + SESSION_MS) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert serve(after, 50_001) is ErrorCode.NONE
    assert after.is_alive(50_001)


@pytest.mark.parametrize("count", [0, 2])
def test_log_directories_must_be_there_and_differ(count: int) -> None:
    one = broker()._replace(log_dirs=(uuid.UUID(int=1),) * count)
    assert register(new_point(), one) is ErrorCode.INVALID_REGISTRATION


@pytest.mark.parametrize("seed", range(200))
def test_whatever_happens_at_most_one_broker_holds_a_session_and_epochs_rise(seed: int) -> None:
    """Random registrations, heartbeats, goodbyes and restarts of the point."""
    chance = random.Random(seed)
    point, now_ms, newest = new_point(), 0, -1
    brokers = [broker(chance.choice((0, 0, 1))) for _ in range(4)]
    epochs: dict[uuid.UUID, int] = {}
    for _ in range(100):
        now_ms += chance.choice((1, 100, SESSION_MS))
        one = chance.choice(brokers)
        before = point.registered
        action = chance.random()
        if action < 0.4:
            verdict = register(point, one, now_ms)
            if isinstance(verdict, RegisteredBroker):
                assert before is None or before.broker.node_id == one.node_id
                assert verdict.broker_epoch >= newest
                newest = epochs[one.incarnation_id] = verdict.broker_epoch
        elif action < 0.9:
            reply = point.heartbeat(
                one.node_id,
                epochs.get(one.incarnation_id, -1),
                want_fence=False,
                want_shut_down=action > 0.8,
                now_ms=now_ms,
            )
            if reply.error is ErrorCode.NONE:
                assert point.registered is not None
                assert point.registered.broker.incarnation_id == one.incarnation_id
        else:
            point = new_point(point.registered, now_ms)
            assert not point.is_alive(now_ms)
