"""A handful of librdkafka's own tests, quick ones over different ground; `scripts/compat librdkafka` runs them all.

They need the test-runner in the cache. `MOLDAU_COMPAT_BUILD=1` builds it first, which takes three quarters of a minute
on two cores.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.compat.brokers import Endpoint
from tests.compat.librdkafka import build, suite
from tests.compat.results import Outcome

QUICK = (
    "0002_unkpart",
    "0003_msgmaxsize",
    "0005_order",
    "0007_autotopic",
    "0008_reqacks",
    "0013_null_msgs",
    "0021_rkt_destroy",
    "0031_get_offsets",
    "0048_partitioner",
    "0057_invalid_topic",
    "0081_admin/DescribeConfigs",
    "0081_admin/DescribeCluster",
)


@pytest.fixture(scope="module")
def source() -> Path:
    if build.is_built():
        return build.SOURCE
    if os.environ.get("MOLDAU_COMPAT_BUILD") != "1":
        pytest.skip("librdkafka's test-runner is not built: scripts/compat librdkafka or MOLDAU_COMPAT_BUILD=1 does it")
    if build.missing_tools():
        pytest.skip(f"librdkafka's test-runner cannot be built without {', '.join(build.missing_tools())}")
    return build.built()


@pytest.mark.parametrize("name", QUICK)
def test_librdkafkas_own_test_passes(name: str, source: Path, endpoint: Endpoint, tmp_path: Path) -> None:
    test = next(test for test in suite.tests_in(source) if test.name == name)
    log = tmp_path / "output"

    outcome = suite.run(test, source, endpoint, log, timeout_s=60)

    assert outcome is Outcome.PASS, log.read_text(errors="replace")[-3000:]
