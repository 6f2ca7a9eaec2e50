"""The tools as a whole: installed under Kafka's names, helpful without arguments, never a traceback."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from moldau.cli.main import COMMANDS
from moldau.cli.main import main as moldau
from moldau.cli.run_class import CLASSES
from moldau.cli.run_class import main as run_class
from moldau.cli.tools import TOOLS, tool_main

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
JOPT_STYLE = [
    "kafka-broker-api-versions",
    "kafka-configs",
    "kafka-console-consumer",
    "kafka-console-producer",
    "kafka-consumer-groups",
    "kafka-consumer-offset-checker",
    "kafka-consumer-perf-test",
    "kafka-delete-records",
    "kafka-e2e-latency",
    "kafka-get-offsets",
    "kafka-groups",
    "kafka-log-dirs",
    "kafka-producer-perf-test",
    "kafka-replay-log-producer",
    "kafka-streams-application-reset",
    "kafka-topics",
]


def test_every_tool_is_installed_bare_and_with_its_suffix() -> None:
    scripts = tomllib.loads(PROJECT.read_text())["project"]["scripts"]
    expected = {"moldau": "moldau.cli.main:main"}
    for name, target in TOOLS.items():
        expected |= {name: target, f"{name}.sh": target}
    assert {name: scripts.get(name) for name in expected} == expected


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_can_be_loaded(name: str) -> None:
    assert callable(tool_main(name))


@pytest.mark.parametrize("words", [[], ["--help"]])
@pytest.mark.parametrize("name", JOPT_STYLE)
def test_without_arguments_the_usage_goes_to_stderr(
    name: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool_main(name)(words) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "Option " in output.err


@pytest.mark.parametrize("name", JOPT_STYLE)
def test_an_unknown_option_is_named_before_the_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool_main(name)(["--such-a-thing"]) == 1
    assert capsys.readouterr().err.startswith("such-a-thing is not a recognized option\n")


@pytest.mark.parametrize("name", JOPT_STYLE)
def test_the_version_is_told(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool_main(name)(["--version"]) == 0
    assert "moldau" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["kafka-topics", "--bootstrap-server", "nonsense", "--list"],
        ["kafka-topics", "--zookeeper", "localhost:1", "--list"],
        ["kafka-topics", "--bootstrap-server", "localhost:1", "--command-config", "/no/such/file", "--list"],
        ["kafka-configs", "--bootstrap-server", ":", "--describe", "--topic", "t"],
        ["kafka-console-producer", "--bootstrap-server", "x", "--topic", "t"],
        ["kafka-console-consumer", "--bootstrap-server", "x", "--topic", "t"],
        ["kafka-get-offsets", "--bootstrap-server", "localhost:1", "--time", "never"],
        ["kafka-delete-records", "--bootstrap-server", "localhost:1", "--offset-json-file", "/no/such/file"],
        ["kafka-producer-perf-test", "--topic", "t", "--num-records", "1", "--record-size", "0"],
        ["kafka-e2e-latency", "localhost:1", "t", "1", "2", "3"],
        ["kafka-cluster", "cluster-id", "-b", "x"],
        ["topics", "list", "-b", "x"],
        ["configs", "show", "cat:1"],
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_1(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert moldau(words) == 1
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    assert (output.out + output.err).strip()


def test_a_zookeeper_address_where_nobody_listens_gets_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool_main("kafka-topics")(["--zookeeper", "localhost:1", "--list"]) == 1
    assert "--bootstrap-server localhost:9092" in capsys.readouterr().out


def test_every_java_class_leads_to_a_tool() -> None:
    assert set(CLASSES.values()) <= set(TOOLS)


def test_an_unknown_java_class_is_reported_as_java_would(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_class(["kafka.tools.Nothing"]) == 1
    assert capsys.readouterr().err == "Error: Could not find or load main class kafka.tools.Nothing\n"
    assert run_class([]) == 1


def test_a_java_class_runs_its_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_class(["kafka.tools.GetOffsetShell", "--version"]) == 0
    assert "moldau" in capsys.readouterr().out


def test_moldau_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert moldau([]) == 0
    output = capsys.readouterr().out
    assert all(f"  {name} " in output for name in COMMANDS)
    assert moldau(["--version"]) == 0
    assert moldau(["nothing"]) == 2


@pytest.mark.parametrize(
    "name", ["topics", "configs", "produce", "consume", "offsets", "records", "log-dirs", "cluster", "perf"]
)
def test_every_command_explains_itself_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        moldau([name, "--help"])
    assert leaving.value.code == 0
    assert "examples:" in capsys.readouterr().out
