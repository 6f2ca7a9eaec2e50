"""The walk from the tree as written to the typed tree, a method per kind of node.

Each node is typed once and remembered, since lists look at their elements several times. Start at `Typer.typed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    SqlType,
    StructType,
)
from moldau.pipeline.cores.sql.arithmetic import without_negative_zero
from moldau.pipeline.cores.sql.casts import converter
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.cores.sql.functions.signatures import INTERVAL_UNIT
from moldau.pipeline.cores.sql.time.calendar import parse_timestamp
from moldau.pipeline.ir.sql.expressions import (
    AllOf,
    AnyOf,
    Case,
    Cast,
    FieldAt,
    In,
    IsNull,
    LambdaParameter,
    Like,
    Literal,
    MakeArray,
    MakeMap,
    MakeStruct,
    Negate,
    Not,
    SqlExpression,
    Subscript,
)
from moldau.pipeline.ksql.errors import CompilationError, KsqlError
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.typing import calls
from moldau.pipeline.ksql.typing.coercion import Element, common_type, convert, is_number
from moldau.pipeline.ksql.typing.operators import typed_arithmetic, typed_comparison
from moldau.pipeline.ksql.typing.scope import Scope

__all__ = ["Typer"]

_TIME_COLUMNS = ("ROWTIME", "WINDOWSTART", "WINDOWEND")
_MORE = "(see https://github.com/confluentinc/ksql/issues/4239)"


class Typer:
    """Types the expressions of one scope."""

    def __init__(self, scope: Scope, functions: FunctionRegistry) -> None:
        self.scope = scope
        self.functions = functions
        self.lambda_types: dict[str, SqlType] = {}
        self._known: dict[int, tuple[ast.Expression, SqlExpression]] = {}

    def typed(self, node: ast.Expression) -> SqlExpression:
        """The typed form of a node."""
        known = self._known.get(id(node))
        if known is not None:
            return known[1]
        visit = _VISITS.get(type(node))
        if visit is None:
            raise KsqlError(f"{render(node)} cannot be used here")
        typed = visit(self, node)
        # The node is kept with its result, so that its id stays its own.
        self._known[id(node)] = (node, typed)
        return typed

    def type_of(self, node: ast.Expression) -> SqlType | None:
        """The type of a node, None for NULL."""
        return self.typed(node).type

    # --- leaves

    def _null(self, node: ast.NullLiteral) -> SqlExpression:
        return Literal(None, None)

    def _decimal(self, node: ast.DecimalLiteral) -> SqlExpression:
        _, digits, exponent = node.value.as_tuple()
        assert isinstance(exponent, int)
        scale = max(-exponent, 0)
        kind = DecimalType(max(len(digits), scale + (abs(node.value) < 1)), scale)
        return Literal(kind, without_negative_zero(node.value))

    def _interval(self, node: ast.IntervalUnit) -> SqlExpression:
        return Literal(INTERVAL_UNIT, node.unit)

    def _column(self, node: ast.ColumnReference) -> SqlExpression:
        if node.source is None and node.name in self.lambda_types:
            return LambdaParameter(self.lambda_types[node.name], node.name)
        return self.scope.column(node)

    def _lambda_variable(self, node: ast.LambdaVariable) -> SqlExpression:
        if node.name not in self.lambda_types:
            raise KsqlError(f"{node.name} is not a parameter of an enclosing lambda")
        return LambdaParameter(self.lambda_types[node.name], node.name)

    def _lambda(self, node: ast.Lambda) -> SqlExpression:
        raise KsqlError(f"A lambda can only be an argument of a function that takes one: {render(node)}")

    # --- operators

    def _signed(self, node: ast.Signed) -> SqlExpression:
        value = self.typed(node.value)
        if not is_number(value.type):
            raise KsqlError(f"Error processing expression: {render(node)}. A sign needs a number, not {value.type}")
        return value if node.sign is ast.Sign.PLUS else Negate(value.type, value)

    def _arithmetic(self, node: ast.Arithmetic) -> SqlExpression:
        return typed_arithmetic(node, self.typed(node.left), self.typed(node.right))

    def _comparison(self, node: ast.Comparison) -> SqlExpression:
        left, right = self._time_literal(node.left, node.right), self._time_literal(node.right, node.left)
        return typed_comparison(node, left, right)

    def _time_literal(self, node: ast.Expression, other: ast.Expression) -> SqlExpression:
        """A text compared with a time of the row (ROWTIME, window bounds) is a date and time."""
        is_time = isinstance(other, ast.ColumnReference) and other.name.endswith(_TIME_COLUMNS)
        if not (is_time and isinstance(node, ast.StringLiteral) and self.typed(other).type == BIGINT):
            return self.typed(node)
        try:
            return Literal(BIGINT, parse_timestamp(node.value))
        except ExpressionError as problem:
            raise KsqlError(f"Failed to parse timestamp '{node.value}': {problem}") from None

    def _logical(self, node: ast.Logical) -> SqlExpression:
        conditions = tuple(self._condition(each, node.operator.value) for each in _joined_by(node))
        return (AllOf if node.operator is ast.LogicalOperator.AND else AnyOf)(BOOLEAN, conditions)

    def _not(self, node: ast.Not) -> SqlExpression:
        return Not(BOOLEAN, self._condition(node.value, "NOT"))

    def _condition(self, node: ast.Expression, operator: str) -> SqlExpression:
        typed = self.typed(node)
        if typed.type != BOOLEAN:
            raise CompilationError(f"operand of {operator} should be BOOLEAN, but {render(node)} is {typed.type}")
        return typed

    def _is_null(self, node: ast.IsNull) -> SqlExpression:
        return IsNull(BOOLEAN, self.typed(node.value), node.is_negated)

    def _between(self, node: ast.Between) -> SqlExpression:
        low = ast.Comparison(ast.ComparisonOperator.GREATER_THAN_OR_EQUAL, node.value, node.low)
        high = ast.Comparison(ast.ComparisonOperator.LESS_THAN_OR_EQUAL, node.value, node.high)
        return AllOf(BOOLEAN, (self.typed(low), self.typed(high)))

    def _in(self, node: ast.In) -> SqlExpression:
        written = (node.value, *node.options)
        try:
            common = common_type([Element(each, self.type_of(each)) for each in written], self.type_of)
            if common is None:
                raise KsqlError("Comparison with NULL not supported: NULL IN (NULL)")
            value, *options = (convert(self.typed(each), common) for each in written)
        except KsqlError as problem:
            raise CompilationError(str(problem)) from None
        return In(BOOLEAN, value, tuple(options))

    def _like(self, node: ast.Like) -> SqlExpression:
        value, pattern = self.typed(node.value), self.typed(node.pattern)
        for side, written in ((value, node.value), (pattern, node.pattern)):
            if side.type not in (STRING, None):
                raise CompilationError(f"LIKE compares texts, but {render(written)} is {side.type}")
        return Like(BOOLEAN, value, pattern, node.escape)

    def _case(self, node: ast.Case) -> SqlExpression:
        if node.operand is not None:
            raise KsqlError(f"The simple form of CASE is not supported, only CASE WHEN: {render(node)}")
        found: SqlType | None = None
        whens = []
        for when in node.whens:
            condition, result = self.typed(when.condition), self.typed(when.result)
            if condition.type != BOOLEAN:
                raise KsqlError(
                    f"WHEN operand type should be boolean.\nType for '{render(when.condition)}' is {condition.type}"
                )
            if found is not None and result.type not in (None, found):
                raise KsqlError(
                    "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
                    f"THEN expression '{render(when)}' has type: {result.type}.\n"
                    f"Previous THEN expression(s) type: {found}."
                )
            found = found or result.type
            whens.append((condition, result))
        default = self.typed(node.default) if node.default is not None else None
        if default is not None and None not in (found, default.type) and default.type != found:
            raise KsqlError(
                "Invalid Case expression. Type for the default clause should be the same as for 'THEN' clauses.\n"
                f"THEN type: {found}.\nDEFAULT type: {default.type}."
            )
        found = found or (default.type if default is not None else None)
        if found is None:
            raise KsqlError("Invalid Case expression. All case branches have NULL type")
        return Case(found, tuple(whens), default)

    def _cast(self, node: ast.Cast) -> SqlExpression:
        value = self.typed(node.value)
        if value.type is None:
            return Literal(node.type, None)
        if converter(value.type, node.type) is None:
            raise CompilationError(f"Cast of {value.type} to {node.type} is not supported")
        return value if value.type == node.type else Cast(node.type, value)

    # --- composed values

    def _subscript(self, node: ast.Subscript) -> SqlExpression:
        base, index = self.typed(node.base), self.typed(node.index)
        if isinstance(base.type, ArrayType):
            if index.type not in (INTEGER, BIGINT):
                raise CompilationError(f"an index of an array is a whole number, but {render(node.index)} is not")
            return Subscript(base.type.element, base, index)
        if isinstance(base.type, MapType):
            return Subscript(base.type.value, base, index)
        hint = ""
        if isinstance(base.type, StructType):
            hint = f" Use the dereference operator for STRUCTS: {render(node.base)}->{render(node.index)}"
        raise KsqlError(f"Subscript expression ({render(node)}) do not apply to {base.type}.{hint}")

    def _dereference(self, node: ast.Dereference) -> SqlExpression:
        base = self.typed(node.base)
        if not isinstance(base.type, StructType):
            raise KsqlError(f"Expected STRUCT type, got: {base.type}")
        position = base.type.position(node.field_name)
        if position is None:
            raise KsqlError(f"Could not find field '{node.field_name}' in '{render(node.base)}'.")
        return FieldAt(base.type.fields[position].type, base, position)

    def _array(self, node: ast.CreateArray) -> SqlExpression:
        if not node.items:
            raise KsqlError(f"Array constructor cannot be empty. Please supply at least one element {_MORE}.")
        element, items = self._list(node.items, "an array", "elements", "value")
        return MakeArray(ArrayType(element), items)

    def _map(self, node: ast.CreateMap) -> SqlExpression:
        if not node.entries:
            raise KsqlError(f"Map constructor cannot be empty. Please supply at least one key value pair {_MORE}.")
        key, keys = self._list(tuple(key for key, _ in node.entries), "a map", "keys", "key")
        value, values = self._list(tuple(value for _, value in node.entries), "a map", "values", "value")
        return MakeMap(MapType(key, value), tuple(zip(keys, values, strict=True)))

    def _list(
        self, written: tuple[ast.Expression, ...], of: str, what: str, one: str
    ) -> tuple[SqlType, tuple[SqlExpression, ...]]:
        common = common_type([Element(each, self.type_of(each)) for each in written], self.type_of)
        if common is None:
            raise KsqlError(
                f"Cannot construct {of} with all NULL {what} {_MORE}. As a workaround, you may cast a NULL {one} "
                "to the desired type."
            )
        return common, tuple(convert(self.typed(each), common) for each in written)

    def _struct(self, node: ast.CreateStruct) -> SqlExpression:
        names = [name for name, _ in node.fields]
        if len(set(names)) < len(names):
            shown = ", ".join(f"{name}:={render(value)}" for name, value in node.fields)
            raise KsqlError(f"Duplicate field names found in STRUCT: 'STRUCT({shown})'")
        items = tuple(self.typed(value) for _, value in node.fields)
        described = []
        for name, item in zip(names, items, strict=True):
            if item.type is None:
                raise KsqlError(f"the field {name} is NULL without a type; CAST it to the type it should have")
            described.append(Field(name, item.type))
        return MakeStruct(StructType(tuple(described)), items)

    # --- functions

    def _call(self, node: ast.FunctionCall) -> SqlExpression:
        return calls.typed_call(self, node)


def _joined_by(node: ast.Logical) -> list[ast.Expression]:
    """The conditions of a list joined by one operator, however it is nested, from left to right."""
    found: list[ast.Expression] = []
    pending: list[ast.Expression] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Logical) and each.operator is node.operator:
            pending += [each.right, each.left]
        else:
            found.append(each)
    return found


def _literal(of: SqlType) -> Callable[[Typer, Any], SqlExpression]:
    return lambda _, node: Literal(of, node.value)


_VISITS: dict[type[ast.Expression], Callable[[Typer, Any], SqlExpression]] = {
    ast.NullLiteral: Typer._null,
    ast.BooleanLiteral: _literal(BOOLEAN),
    ast.IntegerLiteral: _literal(INTEGER),
    ast.LongLiteral: _literal(BIGINT),
    ast.DoubleLiteral: _literal(DOUBLE),
    ast.DecimalLiteral: Typer._decimal,
    ast.StringLiteral: _literal(STRING),
    ast.IntervalUnit: Typer._interval,
    ast.ColumnReference: Typer._column,
    ast.LambdaVariable: Typer._lambda_variable,
    ast.Lambda: Typer._lambda,
    ast.Signed: Typer._signed,
    ast.Arithmetic: Typer._arithmetic,
    ast.Comparison: Typer._comparison,
    ast.Logical: Typer._logical,
    ast.Not: Typer._not,
    ast.IsNull: Typer._is_null,
    ast.Between: Typer._between,
    ast.In: Typer._in,
    ast.Like: Typer._like,
    ast.Case: Typer._case,
    ast.Cast: Typer._cast,
    ast.Subscript: Typer._subscript,
    ast.Dereference: Typer._dereference,
    ast.CreateArray: Typer._array,
    ast.CreateMap: Typer._map,
    ast.CreateStruct: Typer._struct,
    ast.FunctionCall: Typer._call,
}
