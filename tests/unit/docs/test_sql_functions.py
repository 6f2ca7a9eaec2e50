"""The page of SQL functions: its table is what the registry holds, its example works."""

from __future__ import annotations

import re
from pathlib import Path

from moldau.pipeline.cores.sql.arithmetic import MAX_DIGITS
from moldau.pipeline.cores.sql.failures import MAX_SIZE, MAX_STEPS
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.collections import MAX_SERIES
from moldau.pipeline.cores.sql.functions.describing import describe, functions_table
from moldau.pipeline.cores.sql.functions.json_text import MAX_JSON
from moldau.pipeline.cores.sql.functions.libraries import load_functions
from moldau.pipeline.cores.sql.functions.table_functions import MAX_CUBE
from moldau.pipeline.ksql.typing.typing import MAX_DEPTH

PAGE = Path(__file__).parents[3] / "docs" / "sql-functions.md"


def test_the_table_lists_the_built_in_functions() -> None:
    assert PAGE.read_text().endswith(functions_table(BUILTIN) + "\n")


def test_the_limits_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    for limit in (MAX_SIZE, MAX_STEPS, MAX_JSON, MAX_SERIES, MAX_CUBE, MAX_DIGITS, MAX_DEPTH):
        assert f" {limit:,} " in text


def test_the_example_loads(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    functions = load_functions(tmp_path)
    assert describe(functions, "LONGEST").description == "The longest text."
    assert describe(functions, "WORDS").variations[0].return_type == "VARCHAR"
