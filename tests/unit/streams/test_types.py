"""What a user's type checker knows of a pipeline."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def test_types_flow_through_a_pipeline_from_its_serdes_on() -> None:
    checker = pytest.importorskip("mypy.api")
    program = Path(__file__).with_name("typed_pipelines.py")
    limit = sys.getrecursionlimit()
    try:
        said, trouble, status = checker.run(["--strict", "--python-executable", sys.executable, str(program)])
    finally:
        sys.setrecursionlimit(limit)  # mypy raises it for good, and Hypothesis warns where it changes later
    assert status == 0, said + trouble
