"""Programs and commands as a newcomer gets them wrong: one clear sentence, once, and no line of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.client.admin import Admin
from moldau.testing import Broker

PROGRAM = """
from moldau.streams import Consumed, KafkaStreams, StreamsBuilder, StringSerde

def topology():
    builder = StreamsBuilder()
    builder.stream("lines", Consumed.with_(StringSerde(), StringSerde())).to("copies")
    return builder.build()

if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "copy", "bootstrap.servers": "localhost:1"}).run()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "copy_lines.py"
    path.write_text(PROGRAM)
    return path


def ran(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_program_without_a_broker_shows_its_own_line_and_what_to_do(program: Path, tmp_path: Path) -> None:
    ended = ran(str(program), XDG_STATE_HOME=str(tmp_path))

    frames = [line for line in ended.stderr.splitlines() if line.startswith('  File "')]
    assert ended.returncode == 1
    assert [Path(line.split('"')[1]).name for line in frames] == ["copy_lines.py", "kafka_streams.py"]
    assert "no broker answers at localhost:1; start one (`moldau server`)" in ended.stderr.splitlines()[-1]


def test_what_ends_an_application_is_the_last_word_and_said_once(
    moldau_broker: Broker, program: Path, tmp_path: Path
) -> None:
    Admin(moldau_broker.bootstrap_servers).create_topic("lines", partitions=1)
    target = ["streams", "run", f"{program}:topology", "-a", "copy", "-b", moldau_broker.bootstrap_servers]

    ended = ran("-m", "moldau", *target, "-p", f"state.dir={tmp_path}", PATH=str(tmp_path), JAVA_HOME="")

    told = [line for line in ended.stderr.splitlines() if "Spark needs Java" in line]
    assert ended.returncode == 1
    assert told == ended.stderr.splitlines()[-1:]
    assert told[0].startswith("moldau: Spark needs Java 17 or newer, and no `java` is on the path; install one")
    assert "Traceback" not in ended.stderr
