"""Compares allOf, anyOf and oneOf: the number of branches, and whether each has a successor.

Branches are matched one to one in any order, so that as many as possible have a successor.
Start at `compare_combinations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.schemas.findings import NOTHING, Findings
from moldau.schemas.json_schema.places import Place
from moldau.schemas.json_schema.shapes import Combination, Operand, Shape

if TYPE_CHECKING:
    from moldau.schemas.json_schema.compatibility import Comparison

__all__ = ["compare_combinations"]

_Branches = dict[str | int, Operand]


def compare_combinations(comparison: Comparison, old: Shape, new: Shape, path: str) -> Findings:
    """Compare two schemas of which at least one is a combination."""
    if isinstance(new, Combination) and len(new.branches) == 1 and not isinstance(old, Combination):
        return comparison.compare(old, new.branches[0], path)
    if isinstance(old, Combination) and len(old.branches) == 1 and not isinstance(new, Combination):
        return comparison.compare(old.branches[0], new, path)
    if not isinstance(old, Combination):
        assert isinstance(new, Combination)
        if new.criterion != "allOf":
            return _into_choice(comparison, old, new, path)
        old = Combination("allOf", (old,))
    if not isinstance(new, Combination):
        if old.criterion != "allOf":
            return _out_of_choice(comparison, old, new, path)
        new = Combination("allOf", (new,))
    return _both(comparison, old, new, path)


def _into_choice(comparison: Comparison, old: Operand, new: Combination, path: str) -> Findings:
    """Compare a schema with a choice: one branch that accepts the old values is enough."""
    if any(not comparison.compare(old, branch, path) for branch in new.branches):
        return NOTHING
    return comparison.finding("TYPE_CHANGED", path)


def _out_of_choice(comparison: Comparison, old: Combination, new: Operand, path: str) -> Findings:
    """Compare a choice with a schema, which must accept every old branch."""
    kept = [not comparison.compare(branch, new, path) for branch in old.branches]
    if all(kept):
        return NOTHING
    return comparison.finding("SUM_TYPE_NARROWED" if any(kept) else "TYPE_CHANGED", path)


def _both(comparison: Comparison, old: Combination, new: Combination, path: str) -> Findings:
    if not _criterion_may_change(old, new):
        return comparison.finding("COMBINED_TYPE_CHANGED", path)
    olds, news = _distinct(comparison, old), _distinct(comparison, new)
    found = NOTHING
    if len(olds) < len(news) and new.criterion == "allOf":
        found += comparison.finding("PRODUCT_TYPE_EXTENDED", path)
    elif len(olds) > len(news) and old.criterion != "allOf":
        found += comparison.finding("SUM_TYPE_NARROWED", path)
    if _partners(comparison, olds, news, f"{path}/{old.criterion}") < min(len(olds), len(news)):
        found += comparison.finding("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)
    return found


def _partners(comparison: Comparison, olds: _Branches, news: _Branches, path: str) -> int:
    """The number of branches that have a successor of their own.

    A branch with unchanged text is its own successor. This loses no match: another old branch that fits it also fits
    any other successor it could have. So only few branches have to be compared pairwise.
    """
    kept = {text for text in olds if text in news and not comparison.compare(olds[text], news[text], path)}
    left = [branch for text, branch in olds.items() if text not in kept]
    free = [branch for text, branch in news.items() if text not in kept]
    successors = [
        [
            position
            for position, successor in enumerate(free)
            if not comparison.compare(branch, successor, f"{path}/{index}")
        ]
        for index, branch in enumerate(left)
    ]
    return len(kept) + _count_matches(comparison, successors)


def _criterion_may_change(old: Combination, new: Combination) -> bool:
    """Whether the keyword may change: anyOf accepts what the others accept; with one branch all mean the same."""
    if new.criterion in {old.criterion, "anyOf"}:
        return True
    if len(old.branches) == 1:
        return len(new.branches) == 1 or new.criterion == "oneOf"
    return len(new.branches) == 1 and old.criterion == "allOf"


def _distinct(comparison: Comparison, combination: Combination) -> _Branches:
    """The branches by their text, which removes duplicates."""
    by_text: _Branches = {}
    for branch in combination.branches:
        by_text.setdefault(comparison.text(branch) if isinstance(branch, Place) else id(branch), branch)
    return by_text


def _count_matches(comparison: Comparison, successors: list[list[int]]) -> int:
    """The size of a maximum matching, by Kuhn's algorithm (augmenting paths)."""
    partner_of: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for position in successors[index]:
            comparison.effort.spend()
            if position in tried:
                continue
            tried.add(position)
            if position not in partner_of or place(partner_of[position], tried):
                partner_of[position] = index
                return True
        return False

    return sum(place(index, set()) for index in range(len(successors)))
