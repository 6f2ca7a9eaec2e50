"""What the Tab key offers, decided without a cluster; and the scripts that ask."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.completion.candidates import Candidates, Names, candidates
from moldau.cli.completion.scripts import SCRIPTS
from moldau.cli.main import COMMANDS, load
from moldau.cli.main import main as moldau


def offered(line: str) -> set[str]:
    """What fits at the end of a line; a blank at the end begins a new word."""
    return set(candidates(line.split(" ")).words)


def wanted(line: str) -> Names | None:
    return candidates(line.split(" ")).names


def test_commands_then_verbs_then_options() -> None:
    assert {"topics", "groups", "server", "completion"} <= offered("")
    assert offered("con") == {"configs", "connect", "consume"}
    assert offered("topics ") == {"list", "create", "describe", "alter", "delete"}
    assert offered("topics cr") == {"create"}
    assert offered("topics create x --par") == {"--partitions"}
    assert offered("kafka-top") == {"kafka-topics"}


def test_options_before_the_verb_and_the_command_do_not_hinder() -> None:
    assert offered("-b host:1 topics cr") == {"create"}
    assert offered("topics -b host:1 cr") == {"create"}
    assert offered("topics --int") == {"--internal"}
    assert "--bootstrap-server" in offered("--b")
    assert offered("-b ") == set()


def test_an_option_is_offered_once_unless_it_repeats() -> None:
    assert "--partitions" not in offered("topics create x --partitions 3 --")
    assert "--config" in offered("topics create x --config a=b --")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("topics describe ", Names.TOPICS),
        ("topics delete a ", Names.TOPICS),
        ("topics create ", None),
        ("consume or", Names.TOPICS),
        ("consume orders --group ", Names.GROUPS),
        ("groups describe ", Names.GROUPS),
        ("groups reset billing ", Names.TOPICS),
        ("configs set ", Names.TOPICS),
        ("server ", Names.FILES),
        ("topics list --config-file ", Names.FILES),
        ("dump-log --files ", Names.FILES),
        ("topics create orders ", None),
    ],
)
def test_names_come_from_where_they_are(line: str, names: Names | None) -> None:
    assert wanted(line) is names


def test_the_connection_typed_so_far_is_what_names_are_looked_up_with() -> None:
    found = candidates(["-b", "host:1", "topics", "describe", "-X", "a=b", ""])
    assert found == Candidates(names=Names.TOPICS, connection=("-b", "host:1", "-X", "a=b"))


def test_choices_are_offered() -> None:
    assert offered("consume orders -o ") == {"text", "json"}
    assert offered("completion ") == {"bash", "zsh"}


def test_a_slip_further_left_does_not_raise() -> None:
    assert offered("topics --zzz describe --out") <= {"--output"}
    assert offered("nothing here") == set()


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.parser])
def test_every_commands_parser_is_found(name: str) -> None:
    assert load(COMMANDS[name].parser)().prog == f"moldau {name}"


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_the_script_is_one_the_shell_understands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert moldau(["completion", shell]) == 0
    script = capsys.readouterr().out
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    assert subprocess.run([shell, "-n"], check=False, input=script, text=True, capture_output=True).stderr == ""


def test_bash_completes_with_it(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed here")
    command = tmp_path / "moldau"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m moldau.cli.main "$@"\n')
    command.chmod(0o755)
    for line, expected in (
        ("moldau topics cr", ["create"]),
        ("moldau -b localhost:1 gro", ["groups"]),
        ("moldau topics create x --part", ["--partitions"]),
    ):
        script = (
            f"{SCRIPTS['bash']}\nPATH={tmp_path}:$PATH\nCOMP_LINE='{line}' COMP_POINT={len(line)}\n_moldau\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", script], check=False, text=True, capture_output=True, timeout=60)
        assert done.stdout.split() == expected, done.stderr
