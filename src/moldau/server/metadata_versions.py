"""Levels of metadata.version by the names of Kafka's releases, levels of other features at each, and what they need.

Start at `level_of` and `features_at`.
"""

from __future__ import annotations

from typing import Final

from moldau.controller.features import DEPENDENCIES, INITIAL_LEVELS, METADATA_VERSION, SUPPORTED
from moldau.core.errors import InvalidConfigError

__all__ = ["default_level", "dependencies_of", "features_at", "level_of", "name_of"]

FIRST_LEVEL: Final = 7
_STEPS: Final = {
    "3.3": (3,),
    "3.4": (0,),
    "3.5": (0, 1, 2),
    "3.6": (0, 1, 2),
    "3.7": (0, 1, 2, 3, 4),
    "3.8": (0,),
    "3.9": (0,),
    "4.0": (0, 1, 2, 3),
    "4.1": (0, 1),
    "4.2": (0, 1),
    "4.3": (0,),
}
_NAMES: Final = [f"{release}-IV{step}" for release, steps in _STEPS.items() for step in steps]

_SINCE: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "kraft.version": ((21, 1),),
    "transaction.version": ((24, 2),),
    "group.version": ((22, 1),),
    "eligible.leader.replicas.version": ((26, 1),),
    "share.version": ((28, 1),),
    "streams.version": ((29, 1),),
}
"""For each feature, the metadata.version from which Kafka sets each level."""


def default_level() -> int:
    return INITIAL_LEVELS[METADATA_VERSION]


def name_of(level: int) -> str:
    return _NAMES[level - FIRST_LEVEL]


def level_of(release: str) -> int:
    """The level of a release, by full name (`4.0-IV3`) or short name (`4.0`, `4.0.1`: the newest of that release)."""
    short = ".".join(release.split(".")[:2])
    levels = [
        level
        for level, name in enumerate(_NAMES, FIRST_LEVEL)
        if name == release or ("-" not in release and name.startswith(f"{short}-"))
    ]
    supported = SUPPORTED[METADATA_VERSION]
    if not levels or not supported.min <= levels[-1] <= supported.max:
        known = ", ".join(_NAMES[supported.min - FIRST_LEVEL : supported.max - FIRST_LEVEL + 1])
        raise InvalidConfigError(f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}")
    return levels[-1]


def features_at(level: int) -> dict[str, int]:
    """The level of every feature at a metadata.version: Kafka's, or the highest that this release supports."""
    return {
        name: min(max((given for since, given in steps if level >= since), default=0), SUPPORTED[name].max)
        for name, steps in _SINCE.items()
    }


def dependencies_of(name: str, level: int) -> list[str]:
    """What a feature level needs of others, as Kafka's tools print it; raises `InvalidConfigError` if unknown."""
    supported = SUPPORTED.get(name)
    if supported is None:
        raise InvalidConfigError(f"Unknown feature: {name}")
    if not supported.min <= level <= supported.max:
        raise InvalidConfigError(f"No feature:{name} with feature level {level}")
    needed = DEPENDENCIES.get((name, level), {})
    first = f"{_shown(name, level)} {'requires:' if needed else 'has no dependencies.'}"
    return [first, *(f"    {_shown(other, least)}" for other, least in needed.items())]


def _shown(name: str, level: int) -> str:
    return f"{name}={level} ({name_of(level)})" if name == METADATA_VERSION else f"{name}={level}"
