"""Whether one JSON Schema accepts all values that another accepts, as far as comparing keywords can show.

Only incompatible changes are reported. Objects, arrays and combinations have their own modules.
Start at `differences`, then `Comparison.compare`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.findings import NOTHING, Findings, join_findings
from moldau.schemas.incompatibility import Incompatibility, Sides, shorten
from moldau.schemas.json_schema.arrays import compare_arrays
from moldau.schemas.json_schema.combinations import compare_combinations
from moldau.schemas.json_schema.objects import compare_objects
from moldau.schemas.json_schema.patterns import Patterns
from moldau.schemas.json_schema.places import Place, ReferenceEnds
from moldau.schemas.json_schema.rules import Rules
from moldau.schemas.json_schema.shapes import (
    Array,
    Combination,
    Conditional,
    Demand,
    Enumeration,
    Negation,
    Number,
    Object,
    Operand,
    Plain,
    Shape,
    Text,
    demands,
    is_nothing,
)
from moldau.schemas.json_text import Json, render
from moldau.schemas.pairs import Effort, Pairs

__all__ = ["Comparison", "differences"]

_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def differences(new: Place, old: Place, sides: Sides, effort: Effort, *, is_lenient: bool) -> list[Incompatibility]:
    """Return why `new` may reject values that `old` accepts; an empty list means that it accepts all of them."""
    try:
        found = Comparison(Rules(sides, is_lenient=is_lenient), effort).compare(old, new, "#")
    except RecursionError:
        raise InvalidSchemaError("the JSON Schemas are nested too deeply to be compared") from None
    return found.distinct()


class Comparison:
    """One comparison. `old` is the schema data was written with, `new` the one it will be read with."""

    def __init__(self, rules: Rules, effort: Effort) -> None:
        self.rules = rules
        self.effort = effort
        self.patterns = Patterns(effort)
        self._ends = ReferenceEnds()
        self._pairs = Pairs()
        self._alive: list[Operand] = []
        self._shapes: dict[int, tuple[Demand, ...]] = {}

    def compare(self, old: Operand | None, new: Operand | None, path: str) -> Findings:
        """Compare two schemas, either of which may be missing: a missing schema accepts any value."""
        self.effort.spend()
        if new is None:
            return NOTHING
        if old is None:
            return self.finding("SCHEMA_ADDED", path)
        before, now, place = self._resolve_operand(old), self._resolve_operand(new), shorten(path)
        pair = (self._identity(before), self._identity(now))
        return self._pairs.compare(pair, lambda: self._compare_demands(before, now, place))

    def resolve(self, place: Place) -> Place:
        """The end of the chain of references that starts at a place."""
        return self._ends.end_of(place)

    def is_everything(self, place: Place) -> bool:
        """Whether the schema accepts every value."""
        end = self.resolve(place)
        return not is_nothing(end) and not self._demands(end)

    def _resolve_operand(self, operand: Operand) -> Operand:
        return self.resolve(operand) if isinstance(operand, Place) else operand

    def _identity(self, operand: Operand) -> int | bool:
        """The identity of an operand: of a place, the `id()` of its JSON, since places are temporary, or its boolean.

        Other operands may be temporary too; they are kept alive so that their `id()` is not reused.
        """
        if isinstance(operand, Place):
            return id(operand.raw) if isinstance(operand.raw, dict) else bool(operand.raw)
        self._alive.append(operand)
        return id(operand)

    def _demands(self, operand: Operand) -> tuple[Demand, ...]:
        if not isinstance(operand, Place) or not isinstance(operand.raw, dict):
            return demands(operand)
        known = self._shapes.get(id(operand.raw))
        if known is None:
            known = self._shapes[id(operand.raw)] = demands(operand)
        return known

    def finding(self, rule: str, path: str) -> Findings:
        self.effort.spend_on_text(len(path))
        return self.rules.finding(rule, path if path != "#" else "#/")

    def text(self, place: Place) -> str:
        """The text of the schema at a place, to compare two for equality; long texts count as effort."""
        text = render(place.raw)
        self.effort.spend_on_text(len(text))
        return text

    def _compare_demands(self, old: Operand, new: Operand, path: str) -> Findings:
        olds, news = self._demands(old), self._demands(new)
        if is_nothing(old) or (not news and not is_nothing(new)):
            return NOTHING
        if is_nothing(new) or not olds:
            return self.finding("TYPE_CHANGED", path)
        if len(olds) == len(news) == 1:
            return self._compare_single(olds[0][1], news[0][1], path)
        if [about for about, _ in olds] == [about for about, _ in news]:
            found: list[Findings] = []
            for (_, old_demand), (_, new_demand) in zip(olds, news, strict=True):
                found.append(self._compare_single(old_demand, new_demand, path))
            return join_findings(found)
        return compare_combinations(self, _conjunction(olds), _conjunction(news), path)

    def _compare_single(self, old: Operand, new: Operand, path: str) -> Findings:
        if isinstance(old, Place) or isinstance(new, Place):
            return self.compare(old, new, path)
        if isinstance(old, Combination) or isinstance(new, Combination):
            return compare_combinations(self, old, new, path)
        return self._compare_shapes(old, new, path)

    def _compare_shapes(self, old: Shape, new: Shape, path: str) -> Findings:
        match old, new:
            case Text(), Text():
                return self.bounds(old.bounds, new.bounds, path) + self._patterns(old, new, path)
            case Number(), Number():
                return self._numbers(old, new, path)
            case Object(), Object():
                return compare_objects(self, old, new, path)
            case Array(), Array():
                return compare_arrays(self, old, new, path)
            case Enumeration(), Enumeration():
                return self._enumerations(old, new, path)
            case Negation(), Negation():
                backwards = self.compare(new.schema, old.schema, f"{path}/not")
                return self.finding("NOT_TYPE_EXTENDED", f"{path}/not") if backwards else NOTHING
            case Conditional(), Conditional():
                return self._conditionals(old, new, path)
            case Plain(), Plain() if old.kind == new.kind:
                return NOTHING
        return self.finding("TYPE_CHANGED", path)

    def bounds(self, old: Mapping[str, Json], new: Mapping[str, Json], path: str) -> Findings:
        """Compare keywords that limit something: a lower limit may only fall, an upper one only rise."""
        found: list[Findings] = []
        for keyword, limit in new.items():
            rule = _WORDS.sub("_", keyword).upper()
            is_upper = "max" in keyword.lower()
            if keyword not in old:
                found.append(self.finding(f"{rule}_ADDED", f"{path}/{keyword}"))
            elif limit < old[keyword] and is_upper:
                found.append(self.finding(f"{rule}_DECREASED", f"{path}/{keyword}"))
            elif limit > old[keyword] and not is_upper:
                found.append(self.finding(f"{rule}_INCREASED", f"{path}/{keyword}"))
        return join_findings(found)

    def _patterns(self, old: Text, new: Text, path: str) -> Findings:
        if new.pattern is None or new.pattern == old.pattern:
            return NOTHING
        return self.finding("PATTERN_ADDED" if old.pattern is None else "PATTERN_CHANGED", f"{path}/pattern")

    def _numbers(self, old: Number, new: Number, path: str) -> Findings:
        found = self.bounds(old.bounds, new.bounds, path)
        if new.multiple_of is not None:
            found += self._multiples(old.multiple_of, new.multiple_of, f"{path}/multipleOf")
        if new.is_integer and not old.is_integer:
            found += self.finding("TYPE_NARROWED", path)
        return found

    def _multiples(self, old: Json, new: Json, path: str) -> Findings:
        if old is None:
            return self.finding("MULTIPLE_OF_ADDED", path)
        before, now = Fraction(str(old)), Fraction(str(new))
        if before % now == 0:
            return NOTHING
        return self.finding("MULTIPLE_OF_EXPANDED" if now % before == 0 else "MULTIPLE_OF_CHANGED", path)

    def _enumerations(self, old: Enumeration, new: Enumeration, path: str) -> Findings:
        self.effort.spend_on_text(len(old.values) + len(new.values))
        if old.values <= new.values:
            return NOTHING
        is_narrowed = new.values < old.values and new.keyword == old.keyword == "enum"
        return self.finding("ENUM_ARRAY_NARROWED" if is_narrowed else "ENUM_ARRAY_CHANGED", f"{path}/{new.keyword}")

    def _conditionals(self, old: Conditional, new: Conditional, path: str) -> Findings:
        """Compare two conditionals. The choice of the branch must not change, so the conditions must be equal."""
        if self.text(old.condition) != self.text(new.condition):
            return self.finding("TYPE_CHANGED", f"{path}/if")
        then = self.compare(old.then, new.then, f"{path}/then")
        return then + self.compare(old.otherwise, new.otherwise, f"{path}/else")


def _conjunction(parts: tuple[Demand, ...]) -> Combination:
    """All demands of a schema as one allOf; branches of an inner allOf are added to it directly."""
    branches: list[Operand] = []
    for _, demand in parts:
        if isinstance(demand, Combination) and demand.criterion == "allOf":
            branches.extend(demand.branches)
        else:
            branches.append(demand)
    return Combination("allOf", tuple(branches))
