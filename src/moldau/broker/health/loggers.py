"""Broker loggers as a config resource: levels by Kafka's names, changed while the broker runs.

`root` stands for everything under `moldau`. Levels live in the process and are forgotten at a restart,
as in Kafka. Start at `logger_levels` and `levels_to_set`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from moldau.controller.decisions.configs import ConfigOp, ConfigOpType
from moldau.controller.errors import RefusedError
from moldau.core.errors import ErrorCode

__all__ = ["apply_levels", "levels_to_set", "logger_levels"]

ROOT = "root"
OURS = "moldau"
TRACE = 5
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


def logger_levels() -> dict[str, str]:
    """Effective level of every logger we have, by name."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith(OURS + ".")]
    levels = {name: _level_name(logging.getLogger(name).getEffectiveLevel()) for name in sorted(names)}
    return {**levels, ROOT: _level_name(logging.getLogger(OURS).getEffectiveLevel())}


def levels_to_set(ops: Sequence[ConfigOp]) -> dict[str, int]:
    """The levels to set; 0 makes a logger follow its parent again. Raises `RefusedError` for the first bad one."""
    known = logger_levels()
    levels = {}
    for op in ops:
        if op.name not in known:
            raise RefusedError(ErrorCode.INVALID_CONFIG, f"Logger {op.name} does not exist.")
        if op.type == ConfigOpType.SET:
            if op.value not in LEVELS:
                names = ", ".join(LEVELS)
                raise RefusedError(ErrorCode.INVALID_CONFIG, f"Level {op.value} of {op.name} is not one of {names}.")
            levels[op.name] = LEVELS[op.value]
        elif op.type == ConfigOpType.DELETE:
            if op.name == ROOT:
                raise RefusedError(ErrorCode.INVALID_REQUEST, "The root logger's level cannot be deleted.")
            levels[op.name] = logging.NOTSET
        else:
            raise RefusedError(ErrorCode.INVALID_REQUEST, "Log levels can be set and deleted only.")
    return levels


def apply_levels(levels: Mapping[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(OURS if name == ROOT else name).setLevel(level)


def _level_name(level: int) -> str:
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")
