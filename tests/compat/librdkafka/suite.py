"""librdkafka's own broker tests, each in a process of its own, because a time-out ends its whole runner.

Tests that need no broker, tests with a known issue of their own and manual ones are left out, as with the runner's
flags `-L -K`. Start at `tests_in` and `run`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.compat.brokers import AUTHORIZER, KAFKA_VERSION, Endpoint
from tests.compat.results import Outcome

__all__ = ["SCENARIOS", "SuiteTest", "run", "tests_in"]

SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "default": {"num.partitions": "4", "auto.create.topics.enable": "true", **AUTHORIZER},
    "noautocreate": {"num.partitions": "4", "auto.create.topics.enable": "false"},
}
"""The broker settings that the suite's own scenarios ask for."""

ENTRY = re.compile(r"_TEST\(\s*(\d{4}_\w+)\s*,(.*?)\)(?=,\s*(?:_TEST|#|/\*|\{NULL))", re.DOTALL)
SCENARIO = re.compile(r'\.scenario\s*=\s*"([\w,]+)"')
LEFT_OUT = re.compile(r"TEST_F_LOCAL|TEST_F_KNOWN_ISSUE\b|TEST_F_MANUAL")
COLOUR = re.compile(r"\x1b\[[\d;]*m|\x1b\(B")


SPLIT = {"0081_admin": "0081-admin.c"}
"""Tests that go through many APIs and stop at the first that fails: taken one part at a time."""

PART = re.compile(r"^static void\s+do_test_(\w+)\([^)]*\)\s*\{(?:(?!^\}).)*?SUB_TEST", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class SuiteTest:
    """One entry of the suite's table of tests, or one part of an entry."""

    entry: str
    scenario: str
    part: str = ""

    @property
    def name(self) -> str:
        return f"{self.entry}/{self.part}" if self.part else self.entry


def tests_in(source: Path) -> list[SuiteTest]:
    """The tests that need a broker, in the suite's order."""
    table = (source / "tests" / "test.c").read_text().partition("struct test tests[]")[2]
    return [
        SuiteTest(name, scenario_of(arguments), part)
        for name, arguments in ENTRY.findall(table)
        if not LEFT_OUT.search(arguments)
        for part in parts_of(name, source)
    ]


def parts_of(name: str, source: Path) -> list[str]:
    if name not in SPLIT:
        return [""]
    return PART.findall((source / "tests" / SPLIT[name]).read_text())


def scenario_of(arguments: str) -> str:
    named = SCENARIO.search(arguments)
    scenarios = named[1].split(",") if named else ["default"]
    return next(scenario for scenario in scenarios if scenario in SCENARIOS)


def run(
    test: SuiteTest, source: Path, endpoint: Endpoint, log: Path, *, idempotent: bool = False, timeout_s: float = 120
) -> Outcome:
    """Run one test to its end or time-out; all it says goes to `log`."""
    conf = log.with_suffix(".conf")
    conf.write_text(f"metadata.broker.list={endpoint.bootstrap}\n")
    flags = ["-L", "-K", "-Q", "-s", test.scenario, *(["-P"] if idempotent else [])]
    command = ["nice", "./test-runner", *flags, test.entry]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=source / "tests",
            env=environment(test, source, endpoint, conf),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return Outcome.TIMEOUT
    return outcome_of(test.entry, log.read_text(errors="replace"), process.returncode)


def environment(test: SuiteTest, source: Path, endpoint: Endpoint, conf: Path) -> dict[str, str]:
    # CI stretches the suite's own time limits, and then a slow answer of the broker would go unseen.
    inherited = {name: value for name, value in os.environ.items() if name not in {"CI", "KAFKA_VERSION"}}
    return {
        **inherited,
        "LD_LIBRARY_PATH": f"{source}/src:{source}/src-cpp",
        "RDKAFKA_TEST_CONF": str(conf),
        "TEST_KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_PATH": str(endpoint.kafka_path),
        "BROKERS": endpoint.bootstrap,
        **({"SUBTESTS": f"do_test_{test.part}:"} if test.part else {}),
    }


def outcome_of(name: str, output: str, return_code: int) -> Outcome:
    """Read the runner's summary line of the test; a runner that ended without one has failed."""
    summary = re.findall(rf"^\|\s*{name}\s*\|\s*(\w+)\s*\|", COLOUR.sub("", output), re.MULTILINE)
    if not summary or return_code:
        return Outcome.FAIL
    return {"PASSED": Outcome.PASS, "SKIPPED": Outcome.SKIP}.get(summary[-1], Outcome.FAIL)
