"""Topologies by module or file: found, or told what is wrong in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.cli.streams.loading import load_topology
from moldau.cli.tool import ToolError

PROGRAM = """
from moldau.streams import Consumed, JoinWindows, StreamsBuilder, StringSerde

def builder():
    made = StreamsBuilder()
    made.stream("in", Consumed.with_(StringSerde(), StringSerde())).to("out")
    return made

def self_join():
    made = StreamsBuilder()
    stream = made.stream("in", Consumed.with_(StringSerde(), StringSerde()))
    stream.join(stream, lambda one, other: one + other, JoinWindows.of_time_difference_with_no_grace(5)).to("out")
    return made

def topology():
    return builder().build()

ready = topology()
number = 5

def broken():
    return 1 / 0

def misspelt():
    made = StreamsBuilder()
    made.stream("in").mapValues(str)

def with_parameter(number):
    return builder()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    name = f"program_{abs(hash(request.node.name))}"
    path = tmp_path / f"{name}.py"
    path.write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.parametrize("name", ["topology", "builder", "ready"])
def test_functions_builders_and_topologies_will_do(program: Path, name: str) -> None:
    assert [sink.topic for sink in load_topology(f"{program}:{name}").sinks] == ["out"]


def test_a_builder_is_built_with_the_configuration(program: Path) -> None:
    target = f"{program}:self_join"
    assert len(load_topology(target).stores) == 2
    assert len(load_topology(target, {"topology.optimization": "all"}).stores) == 1


def test_a_module_is_found_in_the_current_folder(program: Path) -> None:
    assert load_topology(f"{program.stem}:topology").sources[0].topics == ("in",)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("no-colon", "names no topology; write module:function"),
        ("count.py", "names no topology; write count.py:topology"),
        ("nowhere.py:topology", "there is no file nowhere.py"),
        ("nowhere:topology", "there is no module 'nowhere'"),
        ("{program}:nothing", "has no 'nothing'; it has builder, self_join, topology, ready, broken"),
        ("{program}:topologie", "has no 'topologie'; did you mean 'topology'?"),
        ("{program}:number", "gives int, not a topology"),
        ("{program}:broken", r"failed: ZeroDivisionError: division by zero \(program_\d+\.py:\d+\)"),
        ("{program}:misspelt", r"AttributeError: KStream has no mapValues; .* \(program_\d+\.py:\d+\)$"),
        ("{program}:with_parameter", "failed: TypeError: .* missing 1 required positional argument: 'number'$"),
    ],
)
def test_what_is_wrong_is_told(program: Path, target: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        load_topology(target.format(program=program))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import not_a_module_at_all", r"No module named 'not_a_module_at_all' \(program_\d+.py:1\)$"),
        ("def topology(:", r"SyntaxError: invalid syntax \(program_\d+.py, line 1\)$"),
        ("\nfrom moldau.streams import Nothing", r"ImportError: cannot import name 'Nothing'.*\(program_\d+.py:2\)$"),
    ],
)
def test_a_file_that_cannot_be_imported_is_told(program: Path, text: str, complaint: str) -> None:
    program.write_text(text)

    with pytest.raises(ToolError, match=f"cannot be imported: .*{complaint}"):
        load_topology(f"{program}:topology")


@pytest.mark.parametrize("name", ["json", "sys", "moldau"])
def test_a_file_with_the_name_of_a_module_in_use_is_refused(program: Path, name: str) -> None:
    with_that_name = program.rename(program.with_stem(name))

    with pytest.raises(ToolError, match=f"{name}.py has the name of a module that is in use.*call the file something"):
        load_topology(f"{with_that_name}:topology")


def test_a_topology_is_described(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["streams", "describe", f"{program}:topology"]) == 0
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: [in])" in capsys.readouterr().out


@pytest.mark.parametrize(("form", "beginning"), [("mermaid", "flowchart"), ("dot", "digraph")])
def test_a_topology_is_drawn(program: Path, capsys: pytest.CaptureFixture[str], form: str, beginning: str) -> None:
    assert main(["streams", "describe", f"{program}:topology", "--format", form]) == 0
    assert capsys.readouterr().out.lstrip().startswith(beginning)


def test_an_application_needs_an_id(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["streams", "run", f"{program}:topology", "-b", "localhost:1"]) == 1
    assert "moldau: application.id is missing" in capsys.readouterr().err
