"""COUNT_DISTINCT: exact for few values, HyperLogLog (about 1 % off) beyond.

The state is a list of whole numbers. Few values: their hashes. Many: -1, then the registers, eight to a number. A
register keeps the longest run of leading zeros, plus one, among the hashes that fall to it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from moldau.formats.types import BIGINT, ArrayType, SqlType, Value
from moldau.pipeline.cores.sql.functions.collections import frozen
from moldau.pipeline.cores.sql.functions.registry import BUILTIN, Aggregation, Settings

_EXACT_UP_TO = 1024
_INDEX_BITS = 14
_REGISTERS = 1 << _INDEX_BITS
_DENSE = -1


def _hash(value: Value) -> int:
    """64 bits that depend on the value alone, in any process."""
    digest = hashlib.blake2b(repr(frozen(value)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _note(registers: bytearray, hashed: int) -> None:
    unsigned = hashed & 0xFFFFFFFFFFFFFFFF
    index = unsigned >> (64 - _INDEX_BITS)
    rest = unsigned & ((1 << (64 - _INDEX_BITS)) - 1)
    rank = 64 - _INDEX_BITS - rest.bit_length() + 1
    registers[index] = max(registers[index], rank)


def _registers(state: list[int]) -> bytearray:
    if state[:1] == [_DENSE]:
        return bytearray(b"".join(number.to_bytes(8, "big") for number in state[1:]))
    registers = bytearray(_REGISTERS)
    for hashed in state:
        _note(registers, hashed)
    return registers


def _dense(registers: bytearray) -> list[int]:
    # A register is at most 51, so eight of them never set the sign of a 64-bit number.
    return [_DENSE, *(int.from_bytes(registers[at : at + 8], "big") for at in range(0, _REGISTERS, 8))]


def _estimate(state: list[int]) -> int:
    if state[:1] != [_DENSE]:
        return len(state)
    registers = _registers(state)
    harmonic = sum(2.0**-rank for rank in registers)
    estimate = 0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS * _REGISTERS / harmonic
    empty = registers.count(0)
    if estimate <= 2.5 * _REGISTERS and empty:
        return round(_REGISTERS * math.log(_REGISTERS / empty))
    return round(estimate)


def _add(state: list[int], value: Value) -> list[int]:
    if value is None:
        return state
    hashed = _hash(value)
    if hashed == _DENSE:
        hashed = 0
    if state[:1] != [_DENSE]:
        if hashed in state:
            return state
        if len(state) < _EXACT_UP_TO:
            return [*state, hashed]
    registers = _registers(state)
    _note(registers, hashed)
    return _dense(registers)


def _merge(one: list[int], other: list[int]) -> list[int]:
    if [_DENSE] not in (one[:1], other[:1]):
        together = list(dict.fromkeys((*one, *other)))
        if len(together) <= _EXACT_UP_TO:
            return together
    left, right = _registers(one), _registers(other)
    return _dense(bytearray(map(max, left, right)))


@BUILTIN.aggregate("COUNT_DISTINCT", "(value T) -> BIGINT")
def count_distinct(types: Sequence[SqlType | None], constants: Sequence[Value], settings: Settings) -> Aggregation:
    """How many distinct values there are, about: exact up to a thousand, then within about one per cent."""
    return Aggregation(
        initial=list,
        add=_add,
        merge=_merge,
        result=_estimate,
        result_type=BIGINT,
        state_type=ArrayType(BIGINT),
    )
