"""Transforms of topics, and the one that drops records. Start at `RegexRouter`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.plugin_kinds import Transformation
from moldau.connect.api.records import ConnectRecord
from moldau.connect.transforms.date_patterns import DatePattern

__all__ = ["Filter", "RegexRouter", "TimestampRouter", "pattern_problem", "regex_problem"]


def regex_problem(text: Any) -> str | None:
    """For settings: what is wrong with a regular expression."""
    try:
        re.compile(python_regex(text))
    except re.error as error:
        return f"Invalid regex: {error}"
    return None


def python_regex(text: str) -> str:
    """A Java expression for Python: named groups are written differently."""
    return re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", text)


def pattern_problem(text: Any) -> str | None:
    """For settings: what is wrong with a date pattern."""
    try:
        DatePattern(text)
    except ValueError as error:
        return str(error)
    return None


class RegexRouter(Transformation):
    """Renames the topic if its whole name matches."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("regex", ConfigType.STRING, "Regular expression for the topic's name.", valid=regex_problem),
        Setting("replacement", ConfigType.STRING, "The new name; $1 is the first group."),
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._regex = re.compile(python_regex(values["regex"]))
        self._replacement = _python_template(values["replacement"], self._regex.groups)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        match = self._regex.fullmatch(record.topic)
        if match is None:
            return record
        return record.changed(topic=match.expand(self._replacement))


def _python_template(text: str, groups: int) -> str:
    """A Java replacement as a template of `re`."""

    def one(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "\\\\" if match["escaped"] == "\\" else match["escaped"]
        if match["name"]:
            return f"\\g<{match['name']}>"
        digits: str = match["digits"]
        # Java takes as many digits as make the number of a group.
        while len(digits) > 1 and int(digits) > groups:
            digits = digits[:-1]
        return f"\\g<{digits}>{match['digits'][len(digits) :]}"

    return re.sub(r"\\(?P<escaped>.)|\$\{(?P<name>\w+)\}|\$(?P<digits>\d+)", one, text)


class TimestampRouter(Transformation):
    """Puts the record's time into the topic's name."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("topic.format", ConfigType.STRING, "With ${topic} and ${timestamp}.", "${topic}-${timestamp}"),
        Setting("timestamp.format", ConfigType.STRING, "A date pattern, in UTC.", "yyyyMMdd", pattern_problem),
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._format: str = values["topic.format"]
        self._pattern = DatePattern(values["timestamp.format"])

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record: TimestampRouter needs one to route from {record.topic}")
        moment = self._pattern.format_ms(record.timestamp)
        topic = self._format.replace("${topic}", record.topic, 1).replace("${timestamp}", moment, 1)
        return record.changed(topic=topic)


class Filter(Transformation):
    """Drops every record; used with a predicate."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return None
