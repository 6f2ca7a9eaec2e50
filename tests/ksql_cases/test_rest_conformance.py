"""The conformance cases over HTTP: all pass but those that `known_rest_failures.txt` lists with a reason.

One broker serves them all, and persistent queries run in memory. The cases are data from elsewhere and not part of the
project, so without them there is nothing to run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ksql_cases.rest_runner import REST_FOLDER, RestWorld, load_rest_cases

from moldau.testing import Broker

KNOWN = Path(__file__).with_name("known_rest_failures.txt")
MOST_KNOWN = 1
"""The list may only become shorter: lower this number with it."""

TOTAL_SHARE = 0.9

pytestmark = [
    pytest.mark.skipif(not REST_FOLDER.is_dir(), reason="the conformance cases are not beside the project"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Why cases failed, by their full names; None for those that passed."""
    with Broker() as broker:
        world = RestWorld(broker.bootstrap_servers, tmp_path_factory.mktemp("ksql"))
        try:
            return {case.full_name: world.run_case(case) for case in load_rest_cases()}
        finally:
            world.close()


def known_failures() -> dict[str, str]:
    """Reasons by the full names of cases."""
    lines = [line for line in KNOWN.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.rpartition(" | ") for line in lines)}


def test_only_known_cases_fail(failures: dict[str, str | None]) -> None:
    failed = {name: reason for name, reason in failures.items() if reason is not None}
    assert {name: reason for name, reason in failed.items() if name not in known_failures()} == {}
    assert len(failures) - len(failed) >= TOTAL_SHARE * len(failures)


def test_the_known_failures_are_few_and_have_reasons(failures: dict[str, str | None]) -> None:
    known = known_failures()
    assert known.keys() <= failures.keys()
    assert len(known) <= MOST_KNOWN
    assert all(known.values()), "every known failure has a reason"
