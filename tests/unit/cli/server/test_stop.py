"""Which servers kafka-server-stop means."""

from __future__ import annotations

from moldau.cli.server.stop import chosen
from moldau.server.running import RunningServer

BROKER = RunningServer(1, 0, 1, ("broker",))
CONTROLLER = RunningServer(2, 0, 2, ("controller",))
BOTH = RunningServer(3, 0, 3, ("broker", "controller"))
ALL = [BROKER, CONTROLLER, BOTH]


def test_without_a_filter_all_are_meant() -> None:
    assert chosen(ALL, process_role=None, node_id=None) == ALL


def test_a_role_picks_those_that_have_it() -> None:
    assert chosen(ALL, process_role="controller", node_id=None) == [CONTROLLER, BOTH]


def test_a_node_id_wins_over_a_role() -> None:
    assert chosen(ALL, process_role="controller", node_id=1) == [BROKER]
