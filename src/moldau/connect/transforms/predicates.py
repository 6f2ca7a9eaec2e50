"""The predicates that Kafka ships. Start at any class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, check_all, not_empty
from moldau.connect.api.plugin_kinds import Predicate
from moldau.connect.api.records import ConnectRecord
from moldau.connect.transforms.routing import python_regex, regex_problem

__all__ = ["HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"]


class TopicNameMatches(Predicate):
    """True for records whose whole topic name matches."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting(
            "pattern",
            ConfigType.STRING,
            "Regular expression for the topic's name.",
            valid=check_all(not_empty, regex_problem),
            importance=Importance.MEDIUM,
        )
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        self._pattern = re.compile(python_regex(self.config_def.parse(settings)["pattern"]))

    def test(self, record: ConnectRecord) -> bool:
        return self._pattern.fullmatch(record.topic) is not None


class HasHeaderKey(Predicate):
    """True for records with a header of that name."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("name", ConfigType.STRING, "The header's name.", valid=not_empty, importance=Importance.MEDIUM)
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        self._name: str = self.config_def.parse(settings)["name"]

    def test(self, record: ConnectRecord) -> bool:
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone(Predicate):
    """True for records whose value is null."""

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None
