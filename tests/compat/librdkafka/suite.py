"""librdkafka's own broker tests, each in a process of its own, because a time-out ends its whole runner.

Tests that need no broker, tests with a known issue of their own and manual ones are left out, as with the runner's
flags `-L -K`. Start at `tests_in` and `run`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from tests.compat.brokers import AUTHORIZER, Endpoint
from tests.compat.results import Outcome

__all__ = ["SCENARIOS", "Mode", "SuiteTest", "run", "tests_in"]

DEFAULT = {"num.partitions": "4", "group.initial.rebalance.delay.ms": "3000", **AUTHORIZER}
SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "default": {**DEFAULT, "auto.create.topics.enable": "true"},
    "noautocreate": {**DEFAULT, "auto.create.topics.enable": "false"},
}
"""The broker settings that the suite's own scenarios ask for.

Tests that start two consumers expect both in the group's first generation, so the wait for more members is Kafka's
default here and not the zero that our own tests like.
"""

ENTRY = re.compile(r"_TEST\(\s*(\d{4}_\w+)\s*,(.*?)\)(?=,\s*(?:_TEST|#|/\*|\{NULL))", re.DOTALL)
SCENARIO = re.compile(r'\.scenario\s*=\s*"([\w,]+)"')
LEFT_OUT = re.compile(r"TEST_F_LOCAL|TEST_F_KNOWN_ISSUE\b|TEST_F_MANUAL")
TOO_QUICK_MS = 5
"""No test gets to know a broker in less."""

COLOUR = re.compile(r"\x1b\[[\d;]*m|\x1b\(B")


SPLIT = {"0081_admin": "0081-admin.c", "0103_transactions": "0103-transactions.c"}
"""Tests that go over much ground and stop at the first that fails: taken one part at a time."""

PART = re.compile(r"^(?:static )?void\s+do_test_(\w+)\([^)]*\)\s*\{(?:(?!^\}).)*?SUB_TEST", re.DOTALL | re.MULTILINE)


class Mode(StrEnum):
    """How the suite's clients are set up; the value ends the name of the column of results."""

    PLAIN = ""
    IDEMPOTENT = "_idempotent"
    """Every producer is idempotent (the runner's `-P`)."""
    CONSUMER_PROTOCOL = "_consumer_protocol"
    """Every consumer uses the group protocol of KIP-848."""


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
    test: SuiteTest, source: Path, endpoint: Endpoint, log: Path, *, mode: Mode = Mode.PLAIN, timeout_s: float = 120
) -> Outcome:
    """Run one test to its end or time-out; all it says goes to `log`.

    Quick mode first. Some tests have nothing to do in it and pass at once: those run in full instead.
    """
    conf = log.with_suffix(".conf")
    conf.write_text(f"metadata.broker.list={endpoint.bootstrap}\n")
    flags = ["-L", "-K", "-s", test.scenario, *(["-P"] if mode is Mode.IDEMPOTENT else [])]
    command = ["nice", "./test-runner", *flags, test.entry]
    in_place = partial(
        attempt, test, folder=source / "tests", variables=environment(test, source, endpoint, conf, mode), log=log
    )
    outcome = in_place([*command, "-Q"], timeout_s=timeout_s)
    if outcome in {Outcome.PASS, Outcome.SKIP} and has_done_nothing(test.entry, log.read_text(errors="replace")):
        outcome = in_place(command, timeout_s=timeout_s)
        if outcome is Outcome.PASS and has_done_nothing(test.entry, log.read_text(errors="replace")):
            return Outcome.SKIP
    return outcome


def attempt(
    test: SuiteTest, command: list[str], *, folder: Path, variables: dict[str, str], log: Path, timeout_s: float
) -> Outcome:
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Outcome.TIMEOUT
    return outcome_of(test.entry, log.read_text(errors="replace"), process.returncode)


def environment(test: SuiteTest, source: Path, endpoint: Endpoint, conf: Path, mode: Mode) -> dict[str, str]:
    # CI stretches the suite's own time limits, and then a slow answer of the broker would go unseen.
    inherited = {name: value for name, value in os.environ.items() if name not in {"CI", "KAFKA_VERSION"}}
    return {
        **inherited,
        "LD_LIBRARY_PATH": f"{source}/src:{source}/src-cpp",
        "RDKAFKA_TEST_CONF": str(conf),
        "TEST_KAFKA_VERSION": endpoint.version,
        "KAFKA_PATH": str(endpoint.kafka_path),
        "BROKERS": endpoint.bootstrap,
        "TEST_CONSUMER_GROUP_PROTOCOL": "consumer" if mode is Mode.CONSUMER_PROTOCOL else "classic",
        **({"SUBTESTS": f"do_test_{test.part}:"} if test.part else {}),
    }


def outcome_of(name: str, output: str, return_code: int) -> Outcome:
    """Read what the runner says of the test at its end; a test of which it says nothing has failed.

    The runner picks tests by their number alone, so others of the same number run beside it and may be the ones
    that failed.
    """
    text = COLOUR.sub("", output)
    ended = re.search(rf"= Test {name} (PASSED|SKIPPED) =", text)
    if not ended or (return_code and not re.search(rf'^### Test "(?!{name}\b|<MAIN>)', text, re.MULTILINE)):
        return Outcome.FAIL
    return Outcome.PASS if ended[1] == "PASSED" else Outcome.SKIP


def has_done_nothing(name: str, output: str) -> bool:
    """Whether quick mode left out all that the test consists of."""
    text = COLOUR.sub("", output)
    duration_ms = re.search(rf"\] {name}: duration ([\d.]+)ms", text)
    is_left_out = re.search(rf"^\[{name}\b.*SKIPPING TEST:.*quick mode", text, re.MULTILINE)
    return is_left_out is not None or (
        "SKIPPING TEST" not in text and duration_ms is not None and float(duration_ms[1]) < TOO_QUICK_MS
    )
