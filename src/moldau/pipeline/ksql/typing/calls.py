"""Calls of functions: which overload is meant, with arguments converted to its parameters.

Scalar functions are part of expressions; aggregates and table functions have calls of their own, which the analysis of
a query takes out of its expressions. Start at `typed_call`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    MapType,
    SqlType,
    Value,
)
from moldau.pipeline.cores.sql.functions.registry import (
    BUILT_IN,
    AggregateFunction,
    FunctionRegistry,
    ScalarFunction,
    ScalarOverload,
    Settings,
    TableFunction,
)
from moldau.pipeline.cores.sql.functions.resolution import (
    Argument,
    FunctionLookupError,
    LambdaShape,
    Resolved,
    bind,
    resolve,
    substitute,
)
from moldau.pipeline.cores.sql.functions.signatures import ANY_DECIMAL, Parameter, has_generics
from moldau.pipeline.ir.sql.expressions import (
    AggregateCall,
    Call,
    Lambda,
    LambdaType,
    Literal,
    SqlExpression,
    TableFunctionCall,
)
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.functions_in_use import functions_in_use
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.typing.coercion import as_decimal, widen
from moldau.pipeline.ksql.typing.scope import Scope

if TYPE_CHECKING:
    from moldau.pipeline.ksql.typing.typer import Typer

__all__ = ["typed_aggregate", "typed_call", "typed_table_function"]


def typed_call(typer: Typer, node: ast.FunctionCall) -> SqlExpression:
    """A call of a scalar function."""
    try:
        function = typer.functions.get(node.name)
        if not isinstance(function, ScalarFunction):
            kind = "an aggregate" if isinstance(function, AggregateFunction) else "a table"
            raise KsqlError(f"{node.name} is {kind} function and cannot be used here: {render(node)}")
        shapes = [_argument(typer, argument) for argument in node.arguments]
        resolved = resolve(function.name, function.overloads, shapes)
        arguments = _typed_arguments(typer, node, resolved)
        types = tuple(argument.type for argument in arguments)
        result = resolved.overload.result_type(types, _bindings(resolved.parameters, types))
    except FunctionLookupError as problem:
        raise KsqlError(str(problem)) from None
    library = typer.functions.library_of(node.name)
    return Call(result, node.name, resolved.overload.signature.text, arguments, library)


def _argument(typer: Typer, argument: ast.Expression) -> Argument:
    if isinstance(argument, ast.Lambda):
        return LambdaShape(len(argument.parameters))
    return typer.type_of(argument)


def _bindings(parameters: Sequence[Parameter], arguments: Sequence[SqlType | None]) -> dict[str, SqlType]:
    bindings: dict[str, SqlType] = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        if argument is not None and has_generics(parameter.type) and not bind(parameter.type, argument, bindings):
            raise FunctionLookupError(f"Cannot infer generics for {parameter.type} from {argument}")
    return bindings


def _typed_arguments(
    typer: Typer, node: ast.FunctionCall, resolved: Resolved[ScalarOverload]
) -> tuple[SqlExpression, ...]:
    arguments: list[SqlExpression] = []
    bindings = dict(resolved.bindings)
    for parameter, argument in zip(resolved.parameters, node.arguments, strict=True):
        if isinstance(argument, ast.Lambda):
            typed = _typed_lambda(typer, argument, parameter, bindings)
            if not bind(parameter.type, typed.type, bindings):
                raise FunctionLookupError(f"Cannot infer generics for {parameter.type} from {typed.type}")
        else:
            typed = as_parameter(typer.typed(argument), parameter.type)
        arguments.append(typed)
    return tuple(arguments)


def as_parameter(typed: SqlExpression, declared: SqlType) -> SqlExpression:
    """An argument as the type of its parameter; types that a parameter leaves open stay as they are."""
    if typed.type is None:
        return typed
    target = _concrete(typed.type, declared)
    return typed if target is None else widen(typed, target)


def _concrete(argument: SqlType, declared: SqlType) -> SqlType | None:
    """The type to convert an argument to, None if it is right as it is."""
    if declared == ANY_DECIMAL:
        return as_decimal(argument)
    if isinstance(argument, ArrayType) and isinstance(declared, ArrayType):
        element = _concrete(argument.element, declared.element)
        return None if element is None else ArrayType(element)
    if isinstance(argument, MapType) and isinstance(declared, MapType):
        key, value = _concrete(argument.key, declared.key), _concrete(argument.value, declared.value)
        return None if key is None and value is None else MapType(key or argument.key, value or argument.value)
    return declared if declared in _CONVERTIBLE else None


_CONVERTIBLE = frozenset((BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP))


def _typed_lambda(
    typer: Typer, written: ast.Lambda, parameter: Parameter, bindings: dict[str, SqlType]
) -> SqlExpression:
    declared = parameter.type
    if not isinstance(declared, LambdaType) or len(declared.parameters) != len(written.parameters):
        raise KsqlError(f"a lambda of {len(written.parameters)} parameters is not accepted here: {render(written)}")
    for name in written.parameters:
        if typer.scope.has_column(name):
            raise KsqlError(f"Lambda function argument can't be a column name: {name}")
    if len({*written.parameters, *typer.lambda_types}) < len(written.parameters) + len(typer.lambda_types):
        raise KsqlError("Reusing lambda arguments in nested lambda is not allowed")
    types = tuple(substitute(each, bindings) for each in declared.parameters)
    outer = typer.lambda_types
    typer.lambda_types = outer | dict(zip(written.parameters, types, strict=True))
    try:
        body = typer.typed(written.body)
    finally:
        typer.lambda_types = outer
    if body.type is None:
        raise KsqlError(f"Can't infer a type of null in the lambda {render(written)}; CAST it to the required type")
    return Lambda(LambdaType(types, body.type), written.parameters, body)


# --- aggregates and table functions --------------------------------------------------------------------------


def typed_aggregate(
    call: ast.FunctionCall,
    scope: Scope,
    functions: FunctionRegistry | None = None,
    settings: Settings | None = None,
) -> AggregateCall:
    """A call of an aggregate function over the rows of a scope; without arguments it gets ROWTIME."""
    from moldau.pipeline.ksql.typing.typer import Typer

    functions = functions or functions_in_use()
    typer = Typer(scope, functions)
    written = call.arguments or (ast.ColumnReference("ROWTIME"),)
    try:
        function = functions.get(call.name)
        if not isinstance(function, AggregateFunction):
            raise KsqlError(f"{call.name} is not an aggregate function")
        # COUNT(*) and COUNT() count rows, whatever they hold.
        counts_rows = not call.arguments and function.name.upper() == "COUNT"
        given = [Literal(BIGINT, 0)] if counts_rows else [typer.typed(argument) for argument in written]
        resolved = resolve(
            function.name,
            function.overloads,
            [each.type for each in given],
            # ksqlDB widens no arguments of its own aggregates.
            allow_casts=function.path != BUILT_IN,
        )
        count = len(given) - resolved.overload.constant_count
        constants = tuple(
            _constant(call, place, argument, given[place]) for place, argument in enumerate(written) if place >= count
        )
        arguments = tuple(
            as_parameter(each, parameter.type)
            for each, parameter in zip(given[:count], resolved.parameters, strict=False)
        )
        bound = resolved.overload.build([each.type for each in arguments], constants, settings or {})
    except FunctionLookupError as problem:
        raise KsqlError(str(problem)) from None
    return AggregateCall(
        call.name,
        resolved.overload.signature.text,
        arguments,
        constants,
        bound.result_type,
        bound.state_type,
        functions.library_of(call.name),
    )


def _constant(call: ast.FunctionCall, place: int, written: ast.Expression, typed: SqlExpression) -> Value:
    if not isinstance(typed, Literal):
        raise KsqlError(
            f"Parameter {place + 1} passed to function {call.name} must be a literal constant, "
            f"but was expression: '{render(written)}'"
        )
    return typed.value


def typed_table_function(
    call: ast.FunctionCall, scope: Scope, functions: FunctionRegistry | None = None
) -> TableFunctionCall:
    """A call of a table function over the rows of a scope."""
    from moldau.pipeline.ksql.typing.typer import Typer

    functions = functions or functions_in_use()
    typer = Typer(scope, functions)
    try:
        function = functions.get(call.name)
        if not isinstance(function, TableFunction):
            raise KsqlError(f"{call.name} is not a table function")
        given = [typer.typed(argument) for argument in call.arguments]
        resolved = resolve(function.name, function.overloads, [each.type for each in given])
        arguments = tuple(
            as_parameter(each, parameter.type) for each, parameter in zip(given, resolved.parameters, strict=True)
        )
        types = [each.type for each in arguments]
        result = resolved.overload.result_type(types, _bindings(resolved.parameters, types))
    except FunctionLookupError as problem:
        raise KsqlError(str(problem)) from None
    library = functions.library_of(call.name)
    return TableFunctionCall(call.name, resolved.overload.signature.text, arguments, result, library)
