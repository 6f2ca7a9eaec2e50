"""Run other people's suites on moldau or on Apache Kafka: the command behind `scripts/compat`.

Prints a line a test and the totals, keeps every test's output in the cache, and with `--record` fills in the suite's
table of results. Ends with 1 if a test that moldau is known to pass has failed. Start at `main`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.compat.brokers import KINDS, Endpoint, cache_folder, running
from tests.compat.kafka_python import suite as kafka_python
from tests.compat.librdkafka import build
from tests.compat.librdkafka import suite as librdkafka
from tests.compat.results import COLUMNS, Outcome, Table, allowed

HERE = Path(__file__).parent
RunOne = Callable[[Path], Outcome]
"""Run one test, writing what it says to the given file."""


def main() -> int:
    options = parse_arguments()
    suites = ("librdkafka", "kafka-python", "java") if options.suite == "all" else (options.suite,)
    return max(run_suite(suite, options) for suite in suites)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/compat", description=__doc__)
    parser.add_argument("suite", choices=("librdkafka", "kafka-python", "java", "all"))
    parser.add_argument("--broker", choices=KINDS, default="moldau")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the tests whose name contains TEXT")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--idempotent", action="store_true", help="librdkafka: every producer idempotent (-P)")
    mode.add_argument("--consumer-protocol", action="store_true", help="librdkafka: every consumer with KIP-848")
    parser.add_argument("--timeout-s", type=float, default=300, help="the longest that a test may take")
    parser.add_argument("--record", action="store_true", help="write what came of it into the suite's results.csv")
    return parser.parse_args()


def run_suite(name: str, options: argparse.Namespace) -> int:
    if name == "java":
        return run_java(options)
    folder = HERE / name.replace("-", "_")
    column = options.broker + (mode_of(options) if name == "librdkafka" else "")
    logs = cache_folder("compat-logs") / name / column
    logs.mkdir(parents=True, exist_ok=True)
    table, outcomes = Table(folder / "results.csv", COLUMNS[name]), dict[str, Outcome]()
    expected = [test for test in allowed(folder / "tests.allow") if table.rows[test].get(column) == Outcome.PASS]
    for test, run_one in (librdkafka_tests if name == "librdkafka" else kafka_python_tests)(options):
        began = time.monotonic()
        outcomes[test] = run_one(logs / f"{test.replace('/', '_')}.log")
        print(f"{test:70} {outcomes[test]:8} {time.monotonic() - began:6.1f} s", flush=True)
        if options.record:
            table.record(test, column, outcomes[test])
    print(f"{name} on {options.broker}:", ", ".join(f"{n} {what}" for what, n in Counter(outcomes.values()).items()))
    print(f"what each test said is in {logs}")
    return verdict(options.broker, outcomes, expected)


def librdkafka_tests(options: argparse.Namespace) -> Iterator[tuple[str, RunOne]]:
    """The chosen tests, with a broker for each scenario running while its tests are being taken."""
    source = build.built()
    chosen = [test for test in librdkafka.tests_in(source) if options.only in test.name]
    for scenario, properties in librdkafka.SCENARIOS.items():
        tests = [test for test in chosen if test.scenario == scenario]
        if tests:
            with running(options.broker, properties) as endpoint:
                for test in tests:
                    yield test.name, librdkafka_run(test, source, endpoint, options)


def librdkafka_run(test: librdkafka.SuiteTest, source: Path, endpoint: Endpoint, options: argparse.Namespace) -> RunOne:
    return lambda log: librdkafka.run(test, source, endpoint, log, mode=mode_of(options), timeout_s=options.timeout_s)


def mode_of(options: argparse.Namespace) -> librdkafka.Mode:
    if options.idempotent:
        return librdkafka.Mode.IDEMPOTENT
    return librdkafka.Mode.CONSUMER_PROTOCOL if options.consumer_protocol else librdkafka.Mode.PLAIN


def kafka_python_tests(options: argparse.Namespace) -> Iterator[tuple[str, RunOne]]:
    source = kafka_python.unpacked()
    chosen = [test for test in kafka_python.tests_in(source) if options.only in test]
    with running(options.broker, kafka_python.SETTINGS) as endpoint:
        for test in chosen:
            yield test, kafka_python_run(test, source, endpoint, options)


def kafka_python_run(test: str, source: Path, endpoint: Endpoint, options: argparse.Namespace) -> RunOne:
    return lambda log: kafka_python.run(test, source, endpoint, log, timeout_s=options.timeout_s)


def run_java(options: argparse.Namespace) -> int:
    """Clients and Apache Kafka's own tools. These tests are ours, so pytest runs them."""
    files = [HERE / "test_clients.py", HERE / "test_java_tools.py", HERE / "java" / "side_by_side.py"]
    command = [sys.executable, "-m", "pytest", "-v", *(str(file) for file in files), "-k", options.only]
    return subprocess.run(command, env={**os.environ, "MOLDAU_COMPAT_BROKER": options.broker}, check=False).returncode


def verdict(broker: str, outcomes: dict[str, Outcome], expected: list[str]) -> int:
    failed = {test for test, outcome in outcomes.items() if outcome in {Outcome.FAIL, Outcome.TIMEOUT}}
    broken = sorted(failed & set(expected)) if broker == "moldau" else []
    for name in broken:
        print(f"broken: {name} is in tests.allow and has passed before", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
