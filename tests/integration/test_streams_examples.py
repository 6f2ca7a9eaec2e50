"""The programs of the Streams trainings, and the trending hashtags, give the results that they promise."""

from __future__ import annotations

import pytest
from tests.integration.streams_examples import EXAMPLES, FOLDER, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.program)
def test_an_example_program_gives_its_results_in_memory(example: Example) -> None:
    assert example.run("memory") == example.outputs


def test_every_example_program_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {example.program for example in EXAMPLES}
