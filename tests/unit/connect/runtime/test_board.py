from __future__ import annotations

from moldau.connect.runtime.board import TaskBoard


def test_a_carrier_gets_its_tasks_and_its_reports_are_kept() -> None:
    board = TaskBoard(tasks_per_carrier=2)
    orders = [board.put(f"t{number}", {"n": number}) for number in range(3)]
    assert board.carriers_needed == {0, 1}
    assert [one.key for one in board.sync(0, "life", {})] == ["t0", "t1"]
    assert [one.key for one in board.sync(1, "life", {})] == ["t2"]
    board.sync(0, "life", {orders[0].run: {"state": "RUNNING"}})
    assert board.report(orders[0].run) == {"state": "RUNNING"}
    assert board.report(orders[1].run) is None


def test_a_task_has_ended_when_its_carrier_no_longer_reports_it() -> None:
    board = TaskBoard()
    order = board.put("t", {})
    board.sync(0, "life", {order.run: {"state": "RUNNING"}})
    board.remove("t")
    assert not board.wait_until_ended(order.run, 0)
    assert board.sync(0, "life", {order.run: {"state": "RUNNING"}}) == []
    assert not board.wait_until_ended(order.run, 0)
    board.sync(0, "life", {})
    assert board.wait_until_ended(order.run, 0)


def test_a_carrier_that_is_gone_runs_nothing_and_its_successor_gets_the_same() -> None:
    board = TaskBoard()
    order = board.put("t", {})
    board.sync(0, "first", {order.run: {"state": "RUNNING"}})
    board.forget_carrier(0)
    assert board.wait_until_ended(order.run, 0)
    assert board.sync(0, "second", {}) == [order]
