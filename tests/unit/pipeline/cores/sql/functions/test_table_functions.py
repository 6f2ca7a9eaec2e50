from __future__ import annotations

import pytest

from moldau.formats.columns import Column
from moldau.formats.types import INTEGER, ArrayType
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.table_functions import cube_explode
from moldau.pipeline.cores.sql.rows import table_function_of
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.typing.calls import typed_table_function
from moldau.pipeline.ksql.typing.scope import RowScope


def test_explode_has_a_row_for_each_element() -> None:
    scope = RowScope([Column("A", ArrayType(INTEGER))])
    call = typed_table_function(ast.FunctionCall("EXPLODE", (ast.ColumnReference("A"),)), scope)
    rows = table_function_of(call)
    assert call.result_type == INTEGER
    assert rows([1, None, 3]) == [1, None, 3]
    assert rows([]) == []
    assert rows(None) == []


def test_cube_explode_goes_from_all_null_to_complete() -> None:
    assert cube_explode([1, 2]) == [[None, None], [None, 2], [1, None], [1, 2]]
    assert cube_explode([1, None]) == [[None, None], [1, None]]
    assert cube_explode(None) == []


def test_a_cube_of_many_elements_is_refused() -> None:
    with pytest.raises(ExpressionError, match="at most 20"):
        cube_explode(list(range(60)))
