"""A broker without room on its disk leads nothing, as long as others can."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from moldau.broker.cluster.standing_aside import ENOUGH, TOO_LITTLE, DiskRoom


class Disk:
    def __init__(self) -> None:
        self.free = 1 << 40

    def __call__(self, folder: str) -> int:
        assert folder == "/data"
        return self.free


def image(*active: int) -> Any:
    return SimpleNamespace(brokers={one: SimpleNamespace(is_active=True) for one in active})


def partition(*isr: int, is_leader: bool = True) -> Any:
    return SimpleNamespace(is_leader=is_leader, isr=isr, log=SimpleNamespace(directory="/data/t-0"))


def test_it_stands_aside_until_there_is_plenty_of_room() -> None:
    disk = Disk()
    room = DiskRoom(1, disk)
    led, followed = [partition(1, 2)], [partition(1, 2, is_leader=False)]
    assert not room.stands_aside(led, image(1, 2))

    disk.free = TOO_LITTLE - 1
    assert room.stands_aside(led, image(1, 2))
    disk.free = TOO_LITTLE + 1
    assert room.stands_aside(followed, image(1, 2))
    disk.free = ENOUGH
    assert not room.stands_aside(followed, image(1, 2))


def test_the_last_one_in_sync_stays() -> None:
    disk = Disk()
    disk.free = 0
    room = DiskRoom(1, disk)
    assert not room.stands_aside([partition(1)], image(1, 2))
    assert not room.stands_aside([partition(1, 2)], image(1))
    assert not room.stands_aside([partition(1, 2), partition(1)], image(1, 2))


def test_a_follower_has_nothing_to_hand_over() -> None:
    disk = Disk()
    room = DiskRoom(1, disk)
    disk.free = 0
    assert not room.stands_aside([partition(2, 1, is_leader=False)], image(1, 2))
