"""kafka-consumer-groups refuses what does not go together before it asks anybody."""

from __future__ import annotations

import pytest

from moldau.cli.groups.command import DRY_RUN_WARNING, main
from moldau.cli.groups.every_type import filter_listings as chosen_of_every_type
from moldau.cli.groups.every_type import main as kafka_groups
from moldau.cli.groups.list import filter_listings, parse_states, parse_types
from moldau.cli.groups.partitions import parse_partitions, parse_topic
from moldau.cli.groups.reset import clamp_to_log
from moldau.cli.options import UsageError
from moldau.client.groups import GroupListing
from moldau.core.ids import TopicPartition

SERVER = "--bootstrap-server localhost:1"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--list", 'Missing required argument "[bootstrap-server]"'),
        (f"{SERVER} --describe", "Option [describe] takes one of these options: [group], [all-groups]"),
        (f"{SERVER} --delete", "Option [delete] takes one of these options: [group], [all-groups]"),
        (
            f"{SERVER} --describe --group g --members --state",
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (f"{SERVER} --describe --group g --state Empty", "Option [describe] does not take a value for [state]"),
        (f"{SERVER} --list --timeout -5", "--timeout must be between 0 and 3600000"),
        (f"{SERVER} --list --group g", 'Option "[group]" can\'t be used with option "[list]"'),
        (f"{SERVER} --describe --group g --all-groups", 'Option "[group]" can\'t be used with option "[all-groups]"'),
        (
            f"{SERVER} --delete --group g --topic t",
            "The consumer does not support topic-specific offset deletion from a consumer group.",
        ),
        (
            f"{SERVER} --delete-offsets --group g",
            "Option [delete-offsets] takes the following options: [group], [topic]",
        ),
        (
            f"{SERVER} --reset-offsets --group g --topic t --to-latest --dry-run --execute",
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            f"{SERVER} --reset-offsets --group g --topic t --to-earliest --to-latest --dry-run",
            'Option "[to-earliest]" can\'t be used with option "[to-latest]"',
        ),
        (
            f"{SERVER} --reset-offsets --group g --to-earliest --dry-run",
            "One of the reset scopes should be defined: --all-topics, --topic.",
        ),
        (
            f"{SERVER} --delete --group g --verbose",
            "Option(s) [verbose] are unavailable given other options on the command line",
        ),
        (
            f"{SERVER} --group g --delete --reset-offsets --topic t",
            "The consumer does not support topic-specific offset deletion from a consumer group.",
        ),
        (
            f"{SERVER} --timeout 1",
            "Command must include exactly one action: "
            "--list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex",
        ),
        (f"{SERVER} --list --describe --all-groups", "Command must include exactly one action: "),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_kafkas_words(
    options: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options.split()) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(complaint)


def test_a_reset_needs_a_scenario_and_without_execute_it_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"{SERVER} --reset-offsets --group g --topic t".split()) == 1
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first == DRY_RUN_WARNING
    assert second.startswith("Option '[reset-offsets]' requires one of the following scenarios: [")


def test_a_regular_expression_is_judged_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--validate-regex", "orders.*"]) == 0
    assert capsys.readouterr().out == "The regular expression `orders.*` is valid.\n"
    assert main(["--validate-regex", "orders("]) == 0
    assert capsys.readouterr().out.startswith("The regular expression `orders(` is invalid: ")


def test_states_and_types_are_read_in_any_case() -> None:
    assert parse_states("stable, EMPTY") == {"Stable", "Empty"}
    assert parse_states("") == parse_states(None) == set()
    assert parse_types("classic") == {"Classic"}
    with pytest.raises(UsageError, match=r"Invalid state list 'bogus'. Valid states are: "):
        parse_states("bogus")
    with pytest.raises(UsageError, match=r"Invalid types list 'share'. Valid types are: Classic, Consumer"):
        parse_types("share")


LISTINGS = [
    GroupListing("classic", "Classic", "Stable", "consumer"),
    GroupListing("new", "Consumer", "Empty", "consumer"),
    GroupListing("connect", "Classic", "Stable", "connect"),
    GroupListing("simple", "Classic", "Empty", ""),
    GroupListing("share", "Share", "Empty", "share"),
]


def test_groups_are_chosen_by_state_and_type() -> None:
    assert [g.group_id for g in filter_listings(LISTINGS, states={"Empty"}, types={"Consumer"})] == ["new"]
    assert filter_listings(LISTINGS, states=set(), types=set()) == LISTINGS


def test_consumer_groups_are_those_of_either_type() -> None:
    assert [g.group_id for g in LISTINGS if g.is_consumer_group] == ["classic", "new", "simple"]


@pytest.mark.parametrize(
    ("kind", "protocol", "shortcut", "expected"),
    [
        (None, None, None, ["classic", "new", "connect", "simple", "share"]),
        ("Classic", None, None, ["classic", "connect", "simple"]),
        ("Classic", "connect", None, ["connect"]),
        (None, "consumer", None, ["classic", "new"]),
        (None, None, "consumer", ["classic", "new", "simple"]),
        (None, None, "share", ["share"]),
        (None, None, "streams", []),
    ],
)
def test_kafka_groups_filters(
    kind: str | None, protocol: str | None, shortcut: str | None, expected: list[str]
) -> None:
    found = chosen_of_every_type(LISTINGS, kind=kind, protocol=protocol, shortcut=shortcut)
    assert [listing.group_id for listing in found] == expected


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (f"{SERVER} --consumer", "Command must include exactly one action: --list."),
        (f"{SERVER} --list --group-type bogus", "--group-type must be a valid group type."),
        (f"{SERVER} --list --share --consumer", 'Option "[consumer]" can\'t be used with option "[share]"'),
    ],
)
def test_kafka_groups_refuses(options: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kafka_groups(options.split()) == 1
    assert capsys.readouterr().err.startswith(complaint)


def test_topics_are_whole_or_some_partitions() -> None:
    partitions, missing = parse_partitions(["a", "b:2,0", "gone", "gone2:1", "a"], {"a": 2, "b": 3})
    assert partitions == [*(TopicPartition(*p) for p in [("a", 0), ("a", 1), ("b", 2), ("b", 0), ("gone2", 1)])]
    assert missing == ["gone"]


@pytest.mark.parametrize("text", ["t:", ":0", "t:x", "t:0:1", "t:0,,1", "t:-1"])
def test_a_topic_with_odd_partitions_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"Invalid (topic|partition)"):
        parse_topic(text)


def test_offsets_beyond_the_log_move_into_it_with_a_warning() -> None:
    partitions = [TopicPartition("first_topic", number) for number in range(3)]
    starts, ends = dict.fromkeys(partitions, 2), dict.fromkeys(partitions, 7)
    plan, warnings = clamp_to_log(dict(zip(partitions, (9, 1, 5), strict=True)), starts, ends)
    assert list(plan.values()) == [7, 2, 5]
    assert warnings == [
        "New offset (9) is higher than latest offset for topic partition first_topic-0. Value will be set to 7",
        "New offset (1) is lower than earliest offset for topic partition first_topic-1. Value will be set to 2",
    ]
