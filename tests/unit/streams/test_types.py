"""What a user's type checker knows of a pipeline."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def test_types_flow_through_a_pipeline_from_its_serdes_on() -> None:
    checker = pytest.importorskip("mypy.api")
    program = Path(__file__).with_name("typed_pipelines.py")
    said, trouble, status = checker.run(["--strict", "--python-executable", sys.executable, str(program)])
    assert status == 0, said + trouble
