"""Which content type is answered and which are understood. Pure. Start at `MediaTypes.chosen`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["MediaTypes"]

MAX_KEPT = 256


class _Range(NamedTuple):
    """One entry of an Accept header, such as `application/*;q=0.8`."""

    kind: str
    subkind: str
    quality: float

    def weight_of(self, media_type: str) -> float | None:
        kind, _, subkind = media_type.partition("/")
        matches = self.kind in ("*", kind) and self.subkind in ("*", subkind)
        return self.quality if matches else None

    @property
    def exactness(self) -> int:
        return (self.kind != "*") + (self.subkind != "*")


@dataclass(frozen=True, slots=True)
class MediaTypes:
    """What a service speaks."""

    produced: Mapping[str, float]
    """Content types of answers with the service's own preference, the default first."""
    consumed: frozenset[str]
    """Content types of bodies; a body without one is taken for JSON."""
    _kept: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    def chosen(self, accept: str | None) -> str | None:
        """The type to answer with, or `None` where none would be accepted."""
        if not accept or accept == "*/*":
            return next(iter(self.produced))
        if accept not in self._kept:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[accept] = self._best(list(_ranges(accept)))
        return self._kept[accept]

    def understands(self, content_type: str | None) -> bool:
        return content_type is None or content_type.partition(";")[0].strip().lower() in self.consumed

    def _best(self, ranges: list[_Range]) -> str | None:
        best, best_weight = None, 0.0
        for media_type, preference in self.produced.items():
            matching = [one for one in ranges if one.weight_of(media_type) is not None]
            if not matching:
                continue
            weight = max(matching, key=lambda one: one.exactness).quality * preference
            if weight > best_weight:
                best, best_weight = media_type, weight
        return best


def _ranges(accept: str) -> Iterator[_Range]:
    for entry in accept.lower().split(","):
        media_type, *parameters = (part.strip() for part in entry.split(";"))
        # Java's HTTP client sends a bare `*` for anything.
        kind, slash, subkind = ("*/*" if media_type == "*" else media_type).partition("/")
        if slash and kind and subkind:
            yield _Range(kind, subkind, _quality(parameters))


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
