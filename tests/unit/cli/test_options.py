"""Options are read as Kafka's tools read them."""

from __future__ import annotations

import pytest

from moldau.cli.options import Option, Parsed, Parser, UsageError, parse_bool

PARSER = Parser(
    "Does things.",
    [
        Option("bootstrap-server", "Where.", "host:port", aliases=("broker-list",), is_required=True),
        Option("topic", "Which.", "topic"),
        Option("partitions", "How many.", "number", int),
        Option("config", "What.", "k=v"),
        Option("codec", "How.", "codec", bare_value="gzip"),
        Option("props", "Many.", "k=v ...", takes_many=True),
        Option("list", "List."),
        Option("delete", "Delete."),
        Option("old", "Hidden.", is_hidden=True),
    ],
    epilog="Example: do it",
)


def parse(line: str) -> Parsed:
    return PARSER.parse(line.split())


@pytest.mark.parametrize("line", ["--topic t", "--topic=t", "-topic t", "-topic=t"])
def test_a_value_follows_after_a_blank_or_an_equals_sign_and_one_dash_will_do(line: str) -> None:
    assert parse(line).value("topic") == "t"


def test_options_repeat() -> None:
    assert parse("--config a=b --config c=d").values("config") == ["a=b", "c=d"]


def test_a_value_may_contain_an_equals_sign() -> None:
    assert parse("--config=a=b").values("config") == ["a=b"]


def test_only_one_value_where_one_is_wanted() -> None:
    with pytest.raises(UsageError, match="Found multiple arguments for option topic, but you asked for only one"):
        parse("--topic a --topic b").value("topic")


def test_an_old_name_means_the_same() -> None:
    assert parse("--broker-list h:1").value("bootstrap-server") == "h:1"


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"^zookeeper is not a recognized option$"):
        parse("--zookeeper x")


def test_a_missing_value_is_not_taken_from_the_next_option() -> None:
    with pytest.raises(UsageError, match="Option topic requires an argument"):
        parse("--topic --list")


def test_a_value_may_begin_with_a_dash() -> None:
    assert parse("--partitions -1").value("partitions") == -1
    assert parse("--topic -1").value("topic") == "-1"


def test_a_word_is_not_a_number() -> None:
    with pytest.raises(UsageError, match="Cannot parse argument 'x' of option partitions"):
        parse("--partitions x")


@pytest.mark.parametrize(("line", "value"), [("--codec", "gzip"), ("--codec lz4", "lz4"), ("--codec --list", "gzip")])
def test_an_optional_value_may_be_left_out(line: str, value: str) -> None:
    assert parse(line).value("codec") == value


def test_some_options_take_all_words_up_to_the_next_one() -> None:
    parsed = parse("--props a=1 b=2 --list")
    assert parsed.values("props") == ["a=1", "b=2"]
    assert parsed.has("list")


def test_words_of_no_option_remember_what_they_followed() -> None:
    parsed = parse("--broker-list a:9092, b:9093, c:9094 --topic t stray")
    assert parsed.words_after("bootstrap-server") == ["b:9093,", "c:9094"]
    assert parsed.words_after("topic") == ["stray"]


def test_a_flag_takes_no_value() -> None:
    with pytest.raises(UsageError, match="takes no value"):
        parse("--list=yes")


def test_the_required_is_required_in_kafkas_words() -> None:
    with pytest.raises(UsageError, match=r'^Missing required argument "\[bootstrap-server\]"$'):
        PARSER.check_required(parse("--list"))


def test_pairs_that_exclude_each_other_are_refused_in_kafkas_words() -> None:
    with pytest.raises(UsageError, match=r'^Option "\[partitions\]" can\'t be used with option "\[delete\]"$'):
        parse("--partitions 3 --delete").forbid(["list", "delete"], because_of="partitions")


def test_exactly_one_action() -> None:
    assert parse("--list").exactly_one(("list", "delete"), "one!") == "list"
    for line in ("--topic t", "--list --delete"):
        with pytest.raises(UsageError, match="one!"):
            parse(line).exactly_one(("list", "delete"), "one!")


def test_the_usage_explains_every_option_but_hidden_ones() -> None:
    usage = PARSER.usage()
    assert usage.startswith("Does things.\n")
    assert "--bootstrap-server <host:port>" in usage
    assert "REQUIRED: Where." in usage
    assert "--codec [codec]" in usage
    assert "--old" not in usage
    assert usage.endswith("Example: do it")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("yes", False), ("", False)])
def test_true_is_javas_true(text: str, value: bool) -> None:
    assert parse_bool(text) is value
