"""Content negotiation: which endpoint serves a request, and with which content type. Pure.

Several endpoints may share a method and a path and differ in their `MediaTypes`. Start at `negotiate`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.http.errors import HttpError

__all__ = ["JSON", "MediaTypes", "negotiate"]

MAX_CACHED, MAX_CACHED_LENGTH = 256, 512
"""How many Accept headers are cached, and up to which length, since clients may send arbitrary ones."""


class _Range(NamedTuple):
    """One entry of an Accept header, such as `application/*;q=0.8`."""

    kind: str
    subkind: str
    quality: float = 1.0

    def matches(self, media_type: str) -> bool:
        kind, _, subkind = media_type.partition("/")
        return self.kind in ("*", kind) and self.subkind in ("*", subkind)

    @property
    def exactness(self) -> int:
        return (self.kind != "*") + (self.subkind != "*")


@dataclass(frozen=True, slots=True)
class MediaTypes:
    """The content types of a service, or of one endpoint."""

    produced: Mapping[str, float]
    """Content types of answers with the service's own preference, the default first."""
    consumed: frozenset[str]
    """Content types of bodies, `*/*` for any; a body without one is always read."""
    ignores_accept: bool = False
    """Whether clients that do not accept the default still get it, such as scrapers and probes."""
    _choices: dict[str, tuple[str, float] | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, *media_types: str) -> MediaTypes:
        """Bodies and answers in the same types, the default first."""
        return cls(dict.fromkeys(media_types, 1.0), frozenset(media_types))

    @classmethod
    def always(cls, media_type: str) -> MediaTypes:
        """Answers of one type, whatever the client accepts; bodies of any."""
        return cls({media_type: 1.0}, frozenset({"*/*"}), ignores_accept=True)

    @property
    def default(self) -> str:
        return next(iter(self.produced))

    def best(self, accept: str | None) -> tuple[str, float] | None:
        """The type to answer with and its quality, or `None` if none is acceptable."""
        if not accept or accept == "*/*":
            return self.default, self.produced[self.default]
        if accept in self._choices:
            return self._choices[accept]
        best = self._find_best(list(_ranges(accept)))
        if len(accept) <= MAX_CACHED_LENGTH:
            if len(self._choices) >= MAX_CACHED:
                self._choices.clear()
            self._choices[accept] = best
        return best

    def choose(self, accept: str | None) -> str | None:
        """The type to answer with, or `None` if none is acceptable."""
        best = self.best(accept)
        return None if best is None else best[0]

    def understands(self, content_type: str | None) -> bool:
        return content_type is None or self.names(content_type) or "*/*" in self.consumed

    def names(self, content_type: str) -> bool:
        """Whether bodies of this type are listed by name."""
        return content_type.partition(";")[0].strip().lower() in self.consumed

    def _find_best(self, ranges: list[_Range]) -> tuple[str, float] | None:
        best: tuple[str, float] | None = None
        for media_type, preference in self.produced.items():
            bare_type = media_type.partition(";")[0]
            matching = [one for one in ranges if one.matches(bare_type)]
            if not matching:
                continue
            weight = max(matching, key=lambda one: one.exactness).quality * preference
            if weight > (best[1] if best else 0.0):
                best = media_type, weight
        return best or ((self.default, 0.0) if self.ignores_accept else None)


JSON = MediaTypes.of("application/json")
"""Plain JSON in both directions."""


class Choice(NamedTuple):
    """The number of a row, and the type to answer with."""

    row: int
    media_type: str


def negotiate(rows: Sequence[MediaTypes], *, content_type: str | None, accept: str | None, has_body: bool) -> Choice:
    """Choose among endpoints that share a method and a path: by the body's type first, then by what is accepted.

    Rows that list the body's type by name win over rows that accept any; otherwise the first row wins.
    Raises a 415 for a body of an unsupported type, and a 406 where no row has an acceptable answer. A request that
    needs no body is not rejected for its Content-Type, but a type that some row lists still chooses the row.
    """
    candidates = list(range(len(rows)))
    if content_type is not None:
        named = [row for row in candidates if rows[row].names(content_type)]
        understood = named or [row for row in candidates if rows[row].understands(content_type)]
        if not understood and has_body:
            raise HttpError(415)
        candidates = understood or candidates
    chosen: tuple[Choice, float] | None = None
    for row in candidates:
        best = rows[row].best(accept)
        if best is not None and (chosen is None or best[1] > chosen[1]):
            chosen = Choice(row, best[0]), best[1]
    if chosen is None:
        raise HttpError(406)
    return chosen[0]


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
                quality = float(value)
            except ValueError:
                return 0.0
            return min(1.0, max(0.0, quality)) if not math.isnan(quality) else 0.0
    return 1.0
