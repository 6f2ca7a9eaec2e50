"""Where options may stand, what a noun does alone, and what a slip is answered with."""

from __future__ import annotations

import random

import pytest

from moldau.cli.command_line import CONNECTION_OPTIONS, CommandParser, UnknownOptionError, did_you_mean, scan
from moldau.cli.main import main


def shop(default_verb: str | None = "list") -> CommandParser:
    parser = CommandParser(prog="moldau shop", default_verb=default_verb)
    listing = parser.add_verb("list", help="show")
    listing.add_argument("pattern", nargs="?")
    listing.add_argument("--internal", action="store_true")
    create = parser.add_verb("create", help="make")
    create.add_argument("topic")
    create.add_argument("-p", "--partitions", type=int)
    for verb in (listing, create):
        verb.add_argument("-b", "--bootstrap-server", default="localhost:9092")
        verb.add_argument("-X", dest="properties", action="append", default=[])
    return parser


def refused(parser: CommandParser, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as leaving:
        parser.parse_args(line.split())
    assert leaving.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "create orders -b host:1 -X a=b -p 3",
        "-b host:1 create orders -p 3 -X a=b",
        "-X a=b -bhost:1 create --partitions=3 orders",
        "-p 3 create -X a=b orders --bootstrap-server host:1",
        "--bootstrap-server=host:1 create -X a=b orders -p3",
        "--boot host:1 create -X a=b orders --part 3",
    ],
)
def test_options_may_stand_before_and_after_the_verb(line: str) -> None:
    options = shop().parse_args(line.split())
    assert (options.verb, options.topic, options.partitions) == ("create", "orders", 3)
    assert (options.bootstrap_server, options.properties) == ("host:1", ["a=b"])


def test_any_order_of_the_same_words_means_the_same() -> None:
    pieces = [["create"], ["-b", "host:1"], ["-X", "a=b"], ["--partitions", "3"], ["orders"]]
    chance = random.Random(7)
    for _ in range(500):
        shuffled = sorted(pieces[:-1], key=lambda piece: chance.random())
        place = shuffled.index(["create"]) + 1
        shuffled.insert(chance.randint(place, len(shuffled)), pieces[-1])
        options = shop().parse_args([word for piece in shuffled for word in piece])
        assert (options.verb, options.topic, options.bootstrap_server) == ("create", "orders", "host:1")
        assert (options.partitions, options.properties) == (3, ["a=b"])


def test_properties_before_and_after_the_verb_all_count() -> None:
    assert shop().parse_args(["-X", "a=b", "list", "-X", "c=d"]).properties == ["a=b", "c=d"]


@pytest.mark.parametrize("line", ["", "-b host:1", "--internal -b host:1"])
def test_a_noun_alone_does_what_is_asked_most(line: str) -> None:
    options = shop().parse_args(line.split())
    assert options.verb == "list"
    assert options.internal is ("--internal" in line)


def test_a_noun_without_a_default_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert "create" in refused(shop(default_verb=None), "", capsys)


def test_values_that_begin_with_a_dash_are_values() -> None:
    assert [word.is_value for word in scan(["--shift-by", "-10", "-5"], {"--shift-by": True})] == [False, True, False]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("lst", "did you mean list?"),
        ("creat orders", "did you mean create?"),
        ("ls", "did you mean list?"),
        ("orders", "did you mean `moldau shop list orders`?"),
        ("create orders --partitons 3", "no option --partitons; did you mean --partitions?"),
        ("--partitons 3 create orders", "no option --partitons; did you mean --partitions?"),
        ("create --bootstrap-sever x orders", "did you mean --bootstrap-server?"),
        ("-bootstrap-server x list", "did you mean --bootstrap-server?"),
        ("--list", "did you mean `moldau shop list`?"),
        ("list --zzz", "there is no option --zzz\n"),
        ("list a b", "unexpected arguments: 'b'"),
    ],
)
def test_a_slip_is_answered_with_the_nearest_real_thing(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hint in refused(shop(), line, capsys)


def test_an_unknown_option_wins_over_a_missing_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no option --partitons" in refused(shop(), "create --partitons", capsys)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("topisc", "topics"),
        ("topic", "topics"),
        ("start", "server"),
        ("consumer", "consume"),
        ("kafka-topcs", "kafka-topics"),
    ],
)
def test_a_mistyped_command_is_answered_too(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_options_in_front_of_the_command_are_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-b", "nonsense", "topics"]) == 1
    assert "nonsense" in capsys.readouterr().err
    assert main(["--bootstrap", "nonsense", "kafka-topics", "--list"]) == 1
    assert "nonsense" in capsys.readouterr().out
    assert main(["--boostrap-server", "x", "topics"]) == 2
    assert "did you mean --bootstrap-server?" in capsys.readouterr().err


def test_nothing_near_is_no_hint() -> None:
    assert did_you_mean("xyzzy", ["topics", "groups"]) == ""
    with pytest.raises(UnknownOptionError):
        list(scan(["-z"], CONNECTION_OPTIONS))
