"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from moldau.testing import Broker

ROOT = Path(__file__).resolve().parents[2]


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_ten_lines_run_and_print_what_was_sent(tmp_path: Path) -> None:
    program = tmp_path / "ten_lines.py"
    with Broker() as broker:
        program.write_text(python_blocks()[0].replace("localhost:9092", broker.bootstrap_servers))
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == [f"{number}'" for number in range(10)]


def test_the_testing_broker_of_the_readme_is_the_real_one() -> None:
    given: list[str] = []

    def my_pipeline(*, bootstrap_servers: str) -> None:
        given.append(bootstrap_servers)

    names = {"my_pipeline": my_pipeline}
    exec(compile(python_blocks()[2] + "\ntest_my_pipeline()", "README.md", "exec"), names)
    assert given[0].startswith("127.0.0.1:")
