"""Valid bytes made wrong in the ways that find mistakes: cuts, flips, lies about lengths, pieces of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

__all__ = ["mutated"]

LIES = [
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff",
    b"\x7f\xff",
    b"\x80",
    b"\x00",
    b"\x01",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\xff" * 10,
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
]


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return one of the seeds, changed one to four times."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(_CHANGES)(rng, data, seeds)
    return bytes(data)


def _flip(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))


def _cut(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    del data[start : start + rng.randint(1, 8)]


def _overwrite(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    lie, start = rng.choice(LIES), rng.randrange(len(data) + 1)
    data[start : start + len(lie)] = lie


def _insert(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    data[start:start] = rng.choice((rng.choice(LIES), rng.randbytes(rng.randint(1, 20))))


def _repeat(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.randint(1, 30)]
    data[start:start] = piece * rng.randint(1, 20)


def _splice(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]


_CHANGES: list[Callable[[random.Random, bytearray, Sequence[bytes]], None]] = [
    _flip,
    _set,
    _set,
    _cut,
    _remove,
    _overwrite,
    _overwrite,
    _insert,
    _repeat,
    _splice,
]
