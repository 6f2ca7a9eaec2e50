"""Entities in their long and short forms."""

from __future__ import annotations

import pytest

from moldau.cli.configs.command import PARSER
from moldau.cli.configs.entities import Entity, parse_entities
from moldau.cli.options import UsageError


def parse(line: str) -> list[Entity]:
    return parse_entities(PARSER.parse(line.split()))


@pytest.mark.parametrize(
    ("line", "entities"),
    [
        ("--entity-type topics --entity-name t", [Entity("topics", "t")]),
        ("--topic t", [Entity("topics", "t")]),
        ("--entity-type topics", [Entity("topics")]),
        ("--broker 0", [Entity("brokers", "0")]),
        ("--broker-defaults", [Entity("brokers", is_default=True)]),
        ("--entity-type brokers --entity-default", [Entity("brokers", is_default=True)]),
        (
            "--entity-type clients --entity-name c --entity-type users --entity-default",
            [Entity("users", is_default=True), Entity("clients", "c")],
        ),
        ("--user alice --client c1", [Entity("users", "alice"), Entity("clients", "c1")]),
    ],
)
def test_long_and_short_forms_name_entities_users_first(line: str, entities: list[Entity]) -> None:
    assert parse(line) == entities


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--describe", 'Missing required argument "\\[entity-type\\]"'),
        ("--entity-type cats", "Invalid entity type cats"),
        ("--entity-type topics --topic t", "should not be used in conjunction"),
        ("--entity-type brokers --entity-name x", "must be a valid integer broker id"),
        ("--entity-type topics --entity-default", "no default entity of type topics"),
        ("--entity-type topics --entity-type users", "Only 'users' and 'clients'"),
        ("--entity-name x", "without an --entity-type"),
    ],
)
def test_what_does_not_fit_together_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse(line)


def test_words_for_quotas_and_for_zookeeper_output() -> None:
    assert Entity("users", "alice").quota_words == "user-principal 'alice'"
    assert Entity("clients", is_default=True).quota_words == "the default client-id"
    assert Entity("topics", "t").zookeeper_words == "topic 't'"
