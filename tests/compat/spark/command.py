"""Run Spark's Kafka connector on moldau or on Apache Kafka: the command behind `scripts/compat spark`.

The tests are ours, so pytest runs them; with `--record` their outcomes go into `results.csv`, and a run on Apache
Kafka also writes down what Spark saw there. Start at `main`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest
from tests.compat.results import Outcome, Table

HERE = Path(__file__).parent
KINDS = ("kafka", "moldau")
"""Named here again: pytest wants to be the first to import moldau, and `brokers` would be."""


def main() -> int:
    options = parse_arguments()
    if options.speed:
        from tests.compat.spark import speed

        return speed.main()
    os.environ["MOLDAU_COMPAT_BROKER"] = options.broker
    if options.record:
        os.environ["MOLDAU_SPARK_RECORD"] = "1"
    outcomes = Outcomes()
    status = pytest.main([str(HERE), "-v", "--durations=5", "-k", options.only or "test"], plugins=[outcomes])
    if options.record:
        table = Table(HERE / "results.csv", KINDS)
        for test, outcome in outcomes.by_test.items():
            table.record(test, options.broker, outcome)
    return int(status)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/compat spark", description=__doc__)
    parser.add_argument("--broker", choices=KINDS, default="moldau")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the tests whose name contains TEXT")
    parser.add_argument("--record", action="store_true", help="write what came of it into results.csv")
    parser.add_argument("--speed", action="store_true", help="instead: how fast Spark is on each broker")
    return parser.parse_args()


class Outcomes:
    """A pytest plugin that keeps what came of each test."""

    def __init__(self) -> None:
        self.by_test: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("/")[2]
        if report.failed:
            self.by_test[name] = Outcome.FAIL
        elif report.skipped:
            self.by_test[name] = Outcome.SKIP
        elif report.when == "call":
            self.by_test[name] = Outcome.PASS


if __name__ == "__main__":
    sys.exit(main())
