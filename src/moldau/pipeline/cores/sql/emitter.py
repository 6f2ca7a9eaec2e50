"""Python source for typed expressions.

The source is made of names that are numbered here, operators and calls; every constant and function is passed in by
reference, so nothing that a user wrote becomes source text. Each node becomes one or a few statements on local names,
so depth of nesting is no matter of Python's parser; what would be indented too deeply goes to a function of its own.
Start at `Emitter.value`; `rows` compiles the result.

An operand of NULL that an operator cannot take raises, and ends the surrounding *scope*: the whole item, or the
argument of a function or the element of a constructor that it is part of. A scope that failed is logged and gives None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.formats.types import BIGINT, BYTES, DOUBLE, INTEGER, STRING, ArrayType, DecimalType, MapType, SqlType
from moldau.pipeline.cores.sql import operations
from moldau.pipeline.cores.sql.arithmetic import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, operation, wrap_int, wrap_long
from moldau.pipeline.cores.sql.casts import converter
from moldau.pipeline.cores.sql.failures import MAX_SIZE, ExpressionError
from moldau.pipeline.cores.sql.functions.libraries import functions_of
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ir.sql.expressions import (
    AllOf,
    AnyOf,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    ColumnAt,
    Comparison,
    ComparisonOperator,
    FieldAt,
    In,
    IsNull,
    Lambda,
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

__all__ = ["Emitter"]

_DEEPEST = 10
"""Levels of indentation after which a part becomes a function: Python allows 20 nested blocks."""

_SAFE = (Literal, ColumnAt, LambdaParameter, IsNull, FieldAt, Lambda)
"""Nodes that cannot fail if their operands cannot."""

_NEVER_NULL = (Comparison, AllOf, AnyOf, Not, IsNull, In, Like, MakeArray, MakeMap, MakeStruct)

_OPERATORS = {
    ComparisonOperator.EQUAL: "==",
    ComparisonOperator.NOT_EQUAL: "!=",
    ComparisonOperator.LESS_THAN: "<",
    ComparisonOperator.LESS_THAN_OR_EQUAL: "<=",
    ComparisonOperator.GREATER_THAN: ">",
    ComparisonOperator.GREATER_THAN_OR_EQUAL: ">=",
}


class Emitter:
    """Collects the statements of one function; `names` holds what the source refers to."""

    def __init__(self, functions: FunctionRegistry, names: dict[str, Any] | None = None, level: int = 1) -> None:
        self._functions = functions
        self.names: dict[str, Any] = {} if names is None else names
        self.lines: list[str] = []
        self.level = level
        self._parameters: dict[str, str] = {}

    # --- building blocks

    def fresh(self, prefix: str = "t") -> str:
        """A name not used before."""
        self.names["#"] = number = self.names.get("#", 0) + 1
        return f"{prefix}{number}"

    def constant(self, value: object, prefix: str = "c") -> str:
        """A name for a value or function that is passed in."""
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def line(self, text: str) -> None:
        """Append a statement at the current level."""
        self.lines.append("    " * self.level + text)

    def bind(self, source: str) -> str:
        """A local name for the value of a source expression."""
        if source.isidentifier():
            return source
        name = self.fresh()
        self.line(f"{name} = {source}")
        return name

    # --- nodes

    def value(self, node: SqlExpression) -> str:
        """Append the statements that compute a node; returns the source of its value (a name, or `row[3]`)."""
        if self.level > _DEEPEST and not isinstance(node, Literal | ColumnAt | LambdaParameter):
            return self._outline_function(node)
        return _EMITTERS[type(node)](self, node)

    def scoped(self, node: SqlExpression, handler: str) -> str:
        """Like `value`, but a failure is handled (`handler` is a call with `error`) and gives None."""
        if not can_fail(node):
            return self.value(node)
        result = self.fresh()
        self.line("try:")
        self.level += 1
        self.line(f"{result} = {self.value(node)}")
        self.level -= 1
        self.line("except Fatal:")
        self.line("    raise")
        self.line("except Exception as error:")
        self.line(f"    {handler}")
        self.line(f"    {result} = None")
        return result

    def _outline_function(self, node: SqlExpression) -> str:
        """The node as a function of the row and of the lambda parameters in reach."""
        inner = Emitter(self._functions, self.names)
        inner._parameters = dict(self._parameters)
        reach = ", ".join(("row", *self._parameters.values()))
        name = self.fresh("f")
        result = inner.value(node)
        inner.line(f"return {result}")
        self.names.setdefault("#functions", []).append([f"def {name}({reach}):", *inner.lines])
        return self.bind(f"{name}({reach})")

    def _literal(self, node: Literal) -> str:
        if node.value is None or node.value is True or node.value is False:
            return repr(node.value)
        return self.constant(node.value)

    def _column(self, node: ColumnAt) -> str:
        return f"row[{int(node.position)}]"

    def _lambda_parameter(self, node: LambdaParameter) -> str:
        return self._parameters[node.name]

    def _operand(self, node: SqlExpression, operator: str) -> str:
        """The value of an operand that must not be NULL."""
        name = self.bind(self.value(node))
        if may_be_null(node):
            self.line(f"if {name} is None: raise null_operand({self.constant(operator)})")
        return name

    def _arithmetic(self, node: Arithmetic) -> str:
        left = self._operand(node.left, node.operator.value)
        right = self._operand(node.right, node.operator.value)
        result = self.fresh()
        assert node.type is not None
        quick = node.operator in (
            ArithmeticOperator.ADD,
            ArithmeticOperator.SUBTRACT,
            ArithmeticOperator.MULTIPLY,
        )
        if isinstance(node.type, DecimalType) or not quick:
            self.line(f"{result} = {self.constant(operation(node.operator, node.type))}({left}, {right})")
            return result
        self.line(f"{result} = {left} {node.operator.value} {right}")
        self._wrap(result, node.type)
        return self._bounded_name(result, node.type)

    def _wrap(self, name: str, of: SqlType | None) -> None:
        if of == INTEGER:
            self.line(f"if not {INT_MIN} <= {name} <= {INT_MAX}: {name} = {self.constant(wrap_int)}({name})")
        elif of == BIGINT:
            self.line(f"if not {LONG_MIN} <= {name} <= {LONG_MAX}: {name} = {self.constant(wrap_long)}({name})")

    def _negate(self, node: Negate) -> str:
        result = self.fresh()
        value = self._operand(node.value, "-")
        if isinstance(node.type, DecimalType):
            self.line(f"{result} = {value}.copy_negate() if {value} else {value}")
        else:
            self.line(f"{result} = -{value}")
            self._wrap(result, node.type)
        return result

    def _comparison(self, node: Comparison) -> str:
        left, right = self.bind(self.value(node.left)), self.bind(self.value(node.right))
        result = self.fresh()
        prepare = operations.comparable(node.left.type, node.right.type)
        if prepare is not None or _orders_texts_or_bytes(node):
            compare = self.constant(operations.comparison(node.operator, prepare))
            self.line(f"{result} = {compare}({left}, {right})")
            return result
        if node.operator in (ComparisonOperator.IS_DISTINCT_FROM, ComparisonOperator.IS_NOT_DISTINCT_FROM):
            sign = "!=" if node.operator is ComparisonOperator.IS_DISTINCT_FROM else "=="
            self.line(f"{result} = {left} {sign} {right}")
            return result
        guards = [f"{name} is not None and " for name, side in _sides(left, right, node) if may_be_null(side)]
        self.line(f"{result} = {''.join(guards)}{left} {_OPERATORS[node.operator]} {right}")
        return result

    def _conditions(self, node: AllOf | AnyOf, decides: bool, operator: str) -> str:
        """AND and OR: a loop that runs once, so that any number of conditions stays at one level."""
        result = self.fresh()
        self.line("while True:")
        self.level += 1
        for condition in node.conditions:
            value = self._operand(condition, operator)
            self.line(f"if {'' if decides else 'not '}{value}:")
            self.line(f"    {result} = {decides}")
            self.line("    break")
        self.line(f"{result} = {not decides}")
        self.line("break")
        self.level -= 1
        return result

    def _all_of(self, node: AllOf) -> str:
        return self._conditions(node, False, "AND")

    def _any_of(self, node: AnyOf) -> str:
        return self._conditions(node, True, "OR")

    def _not(self, node: Not) -> str:
        value = self._operand(node.value, "NOT")
        return self.bind(f"(not {value})")

    def _is_null(self, node: IsNull) -> str:
        return self.bind(f"({self.value(node.value)} is {'not ' if node.is_negated else ''}None)")

    def _in(self, node: In) -> str:
        value = self.bind(self.value(node.value))
        options = [option for option in node.options if not (isinstance(option, Literal) and option.value is None)]
        if all(isinstance(option, Literal) and _is_hashable(option.value) for option in options):
            allowed = self.constant(frozenset(option.value for option in options if isinstance(option, Literal)))
            return self.bind(f"({value} is not None and {value} in {allowed})")
        result = self.fresh()
        self.line("while True:")
        self.level += 1
        for option in options:
            self.line(f"if {value} is not None and {value} == {self.value(option)}:")
            self.line(f"    {result} = True")
            self.line("    break")
        self.line(f"{result} = False")
        self.line("break")
        self.level -= 1
        return result

    def _like(self, node: Like) -> str:
        value = self._operand(node.value, "LIKE")
        if isinstance(node.pattern, Literal) and isinstance(node.pattern.value, str):
            matches = self.constant(operations.like_literal(node.pattern.value, node.escape))
            return self.bind(f"{matches}({value})")
        pattern = self._operand(node.pattern, "LIKE")
        return self.bind(f"{self.constant(operations.like)}({value}, {pattern}, {self.constant(node.escape)})")

    def _case(self, node: Case) -> str:
        result = self.fresh()
        self.line("while True:")
        self.level += 1
        for condition, outcome in node.whens:
            value = self._operand(condition, "CASE WHEN")
            self.line(f"if {value}:")
            self.level += 1
            self.line(f"{result} = {self.value(outcome)}")
            self.line("break")
            self.level -= 1
        self.line(f"{result} = {'None' if node.default is None else self.value(node.default)}")
        self.line("break")
        self.level -= 1
        return result

    def _cast(self, node: Cast) -> str:
        assert node.value.type is not None
        assert node.type is not None
        convert = converter(node.value.type, node.type)
        if convert is None:
            raise ExpressionError(f"Cast of {node.value.type} to {node.type} is not supported")
        value = self.bind(self.value(node.value))
        call = f"{self.constant(convert)}({value})"
        return self.bind(f"None if {value} is None else {call}" if may_be_null(node.value) else call)

    def _subscript(self, node: Subscript) -> str:
        base, index = self.bind(self.value(node.base)), self.bind(self.value(node.index))
        if isinstance(node.base.type, MapType):
            return self.bind(f"None if {base} is None else {base}.get({index})")
        at = self.constant(operations.array_item)
        return self.bind(f"None if {base} is None else {at}({base}, {index})")

    def _field(self, node: FieldAt) -> str:
        base = self.bind(self.value(node.base))
        return self.bind(f"None if {base} is None else {base}[{int(node.position)}]")

    def _element(self, node: SqlExpression) -> str:
        return self.scoped(node, "element_failed(error, row)")

    def _make_array(self, node: MakeArray) -> str:
        items = [self._element(item) for item in node.items]
        return self.bind(f"[{', '.join(items)}]")

    def _make_map(self, node: MakeMap) -> str:
        entries = [(self._element(key), self._element(value)) for key, value in node.entries]
        return self.bind("{" + ", ".join(f"{key}: {value}" for key, value in entries) + "}")

    def _make_struct(self, node: MakeStruct) -> str:
        items = [self._element(item) for item in node.items]
        return self.bind(f"({''.join(f'{item}, ' for item in items)})")

    def _call(self, node: Call) -> str:
        functions = self._functions if node.library is None else functions_of(node.library)
        overload = functions.scalar_overload(node.function, node.signature)
        assert node.type is not None
        implementation = self.constant(overload.bound([argument.type for argument in node.arguments], node.type), "g")
        arguments = [self.bind(self._element(argument)) for argument in node.arguments]
        call = f"{implementation}({', '.join(arguments)})"
        return self._bounded_name(self.bind(_unless_null(call, overload.is_strict, arguments, node)), node.type)

    def _bounded_name(self, name: str, of: SqlType | None) -> str:
        """The name of a value that is not larger than any record."""
        if of in (STRING, BYTES) or isinstance(of, ArrayType):
            self.line(f"if {name} is not None and len({name}) > {MAX_SIZE}: raise too_large()")
        return name

    def _lambda(self, node: Lambda) -> str:
        inner = Emitter(self._functions, self.names)
        own = {name: self.fresh("p") for name in node.parameters}
        inner._parameters = self._parameters | own
        # Lambdas within lambdas multiply their steps: a row may take so many and no more.
        inner.line("steps[0] -= 1")
        inner.line("if steps[0] < 0: raise too_many_steps()")
        self.names["#has lambdas"] = True
        result = inner.value(node.body)
        inner.line(f"return {result}")
        name = self.fresh("f")
        reach = ("row", *self._parameters.values())
        self.names.setdefault("#functions", []).append(
            [f"def {name}({', '.join((*reach, *own.values()))}):", *inner.lines]
        )
        return self.bind(f"{self.constant(operations.closure)}({name}, {', '.join(reach)})")


def _unless_null(call: str, is_strict: bool, arguments: list[str], node: Call) -> str:
    """A strict function is not called where an argument is NULL."""
    pairs = zip(arguments, node.arguments, strict=True)
    nullable = [name for name, argument in pairs if may_be_null(argument) or can_fail(argument)]
    if not is_strict or not nullable:
        return call
    return f"None if {' or '.join(f'{name} is None' for name in nullable)} else {call}"


def _sides(left: str, right: str, node: Comparison) -> tuple[tuple[str, SqlExpression], tuple[str, SqlExpression]]:
    return (left, node.left), (right, node.right)


def _orders_texts_or_bytes(node: Comparison) -> bool:
    return node.left.type in (STRING, BYTES) and node.operator not in (
        ComparisonOperator.EQUAL,
        ComparisonOperator.NOT_EQUAL,
        ComparisonOperator.IS_DISTINCT_FROM,
        ComparisonOperator.IS_NOT_DISTINCT_FROM,
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def may_be_null(node: SqlExpression) -> bool:
    """Whether a node can have no value, where it did not fail."""
    if isinstance(node, Literal):
        return node.value is None
    if isinstance(node, Arithmetic | Negate):
        return False
    return not isinstance(node, _NEVER_NULL)


def can_fail(node: SqlExpression) -> bool:
    """Whether computing a node can raise."""
    if not isinstance(node, _SAFE):
        return not isinstance(node, Comparison) or _comparison_can_fail(node)
    if isinstance(node, IsNull):
        return can_fail(node.value)
    return can_fail(node.base) if isinstance(node, FieldAt) else False


def _comparison_can_fail(node: Comparison) -> bool:
    kinds = {type(node.left.type), type(node.right.type)}
    mixes = DecimalType in kinds and DOUBLE in (node.left.type, node.right.type)
    return mixes or can_fail(node.left) or can_fail(node.right)


_EMITTERS: dict[type[SqlExpression], Callable[[Emitter, Any], str]] = {
    Literal: Emitter._literal,
    ColumnAt: Emitter._column,
    LambdaParameter: Emitter._lambda_parameter,
    Arithmetic: Emitter._arithmetic,
    Negate: Emitter._negate,
    Comparison: Emitter._comparison,
    AllOf: Emitter._all_of,
    AnyOf: Emitter._any_of,
    Not: Emitter._not,
    IsNull: Emitter._is_null,
    In: Emitter._in,
    Like: Emitter._like,
    Case: Emitter._case,
    Cast: Emitter._cast,
    Subscript: Emitter._subscript,
    FieldAt: Emitter._field,
    MakeArray: Emitter._make_array,
    MakeMap: Emitter._make_map,
    MakeStruct: Emitter._make_struct,
    Call: Emitter._call,
    Lambda: Emitter._lambda,
}
