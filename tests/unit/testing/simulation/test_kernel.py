"""The kernel of the simulation: one clock, one order, one source of chance."""

from __future__ import annotations

from moldau.testing.simulation.kernel import Kernel
from moldau.testing.simulation.network import Network, NetworkFaults


def test_events_happen_in_order_of_time_and_then_of_planning() -> None:
    kernel, seen = Kernel(1), []
    for name, delay_ms in (("late", 20), ("first", 5), ("second", 5), ("never", 500)):
        kernel.after(delay_ms, lambda name=name: seen.append((name, kernel.now_ms)))  # type: ignore[misc]
    kernel.run_for(100)
    assert seen == [("first", 1005), ("second", 1005), ("late", 1020)]
    assert kernel.now_ms == 1100


def test_what_an_event_plans_happens_too() -> None:
    kernel, seen = Kernel(1), []
    kernel.after(5, lambda: kernel.after(5, lambda: seen.append(kernel.now_ms)))
    kernel.run_for(10)
    assert seen == [1010]


def test_the_story_is_the_last_notes() -> None:
    kernel = Kernel(1)
    for number in range(1000):
        kernel.note("note %d", number)
    assert kernel.story(2) == "    1000 ms  note 998\n    1000 ms  note 999"


def test_a_network_loses_doubles_and_is_cut() -> None:
    kernel = Kernel(3)
    network = Network(kernel, NetworkFaults(loss=0.2, doubling=0.2))
    arrived = []
    for number in range(200):
        network.send(1, 2, lambda number=number: arrived.append(number))  # type: ignore[misc]
    kernel.run_for(5000)
    assert len(set(arrived)) < 200
    assert len(arrived) > len(set(arrived))
    assert arrived != sorted(arrived)
    arrived.clear()
    network.faults = NetworkFaults()
    network.cut([1], [2, 3], is_one_way=True)
    network.send(1, 2, lambda: arrived.append(1))
    network.send(2, 1, lambda: arrived.append(2))
    network.heal()
    network.send(1, 2, lambda: arrived.append(3))
    kernel.run_for(5000)
    assert sorted(arrived) == [2, 3]
