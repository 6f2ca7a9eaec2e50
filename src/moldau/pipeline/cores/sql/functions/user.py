"""Functions of users, written in Python: the decorators, and what they mean. `libraries` loads folders of modules.

    @udf
    def initials(name: str) -> str:
        '''The first letters of all words.'''
        return "".join(word[0] for word in name.split())

    @udtf
    def words(text: str) -> list[str]: ...

    @udaf
    class Longest:
        '''The longest text.'''
        def initial(self) -> str | None: ...
        def add(self, state: str | None, text: str | None) -> str | None: ...
        def merge(self, one: str | None, other: str | None) -> str | None: ...
        def result(self, state: str | None) -> str | None: ...      # optional; undo likewise

Types come from the annotations (see `annotations`). A function gets NULL only for parameters that allow None; otherwise
a NULL argument gives NULL. Decorators only mark; `libraries.load_functions` declares what it finds. Start at `udf`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_origin, get_type_hints, overload

from moldau.formats.types import ArrayType, SqlType, Value
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.annotations import allows_none, from_python, to_python, type_of_annotation
from moldau.pipeline.cores.sql.functions.registry import (
    BUILT_IN,
    AggregateFunction,
    AggregateOverload,
    Aggregation,
    FunctionKind,
    FunctionRegistry,
    ScalarFunction,
    ScalarOverload,
    Settings,
    TableFunction,
    TableOverload,
)
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError, bind, substitute
from moldau.pipeline.cores.sql.functions.signatures import (
    Parameter,
    ReturnRule,
    Signature,
    has_generics,
    type_text,
)

__all__ = ["MARK", "declare", "udaf", "udf", "udtf"]

MARK = "__moldau_sql_function__"
T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Mark:
    kind: FunctionKind
    name: str | None
    description: str | None
    author: str
    version: str
    returns: ReturnRule | None = None
    whole_column: Callable[..., Any] | None = None


def _decorator(target: Any, mark: _Mark) -> Any:
    def apply(decorated: Any) -> Any:
        setattr(decorated, MARK, mark)
        return decorated

    return apply if target is None else apply(target)


@overload
def udf(target: T) -> T: ...
@overload
def udf(
    *,
    name: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
    returns: ReturnRule | None = None,
    whole_column: Callable[..., Any] | None = None,
) -> Callable[[T], T]: ...
def udf(
    target: Any = None,
    *,
    name: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
    returns: ReturnRule | None = None,
    whole_column: Callable[..., Any] | None = None,
) -> Any:
    """Mark a function as a scalar function of SQL.

    `returns` computes the type of the result from those of the arguments where the annotation cannot (a DECIMAL).
    `whole_column` is the same function over Arrow columns, for engines that can use it.
    """
    return _decorator(target, _Mark(FunctionKind.SCALAR, name, description, author, version, returns, whole_column))


@overload
def udtf(target: T) -> T: ...
@overload
def udtf(
    *, name: str | None = None, description: str | None = None, author: str = "", version: str = ""
) -> Callable[[T], T]: ...
def udtf(
    target: Any = None, *, name: str | None = None, description: str | None = None, author: str = "", version: str = ""
) -> Any:
    """Mark a function that returns a list as a table function of SQL: a row for each element."""
    return _decorator(target, _Mark(FunctionKind.TABLE, name, description, author, version))


@overload
def udaf(target: T) -> T: ...
@overload
def udaf(
    *, name: str | None = None, description: str | None = None, author: str = "", version: str = ""
) -> Callable[[T], T]: ...
def udaf(
    target: Any = None, *, name: str | None = None, description: str | None = None, author: str = "", version: str = ""
) -> Any:
    """Mark a class with initial, add and merge (and result, undo) as an aggregate function of SQL.

    Parameters of its `__init__` are the constants of a call: `LONGEST(column, 3)` makes `Longest(3)`.
    """
    return _decorator(target, _Mark(FunctionKind.AGGREGATE, name, description, author, version))


# --- declaring -----------------------------------------------------------------------------------------------


def declare(registry: FunctionRegistry, decorated: Any, path: str = "") -> None:
    """Add a marked function or class to a registry; further ones of its name and kind become overloads."""
    mark: _Mark = getattr(decorated, MARK)
    name = (mark.name or decorated.__name__).upper()
    try:
        _declare_as(registry, decorated, mark, name, path)
    except (TypeError, NameError) as problem:
        raise FunctionLookupError(f"{name}: its annotations cannot be read: {problem}") from None


def _declare_as(registry: FunctionRegistry, decorated: Any, mark: _Mark, name: str, path: str) -> None:
    common: dict[str, Any] = {
        "name": name,
        "description": mark.description or " ".join((decorated.__doc__ or "").split()),
        "author": mark.author,
        "version": mark.version,
        "path": path,
    }
    known = registry.find(name)
    match mark.kind:
        case FunctionKind.SCALAR:
            scalar = known if isinstance(known, ScalarFunction) and known.path != BUILT_IN else None
            if scalar is None:
                scalar = ScalarFunction(**common, category="USER")
                registry.add(scalar)
            scalar.overloads.extend(_scalar(decorated, mark))
        case FunctionKind.TABLE:
            table = known if isinstance(known, TableFunction) and known.path != BUILT_IN else None
            if table is None:
                table = TableFunction(**common, category="TABLE")
                registry.add(table)
            table.overloads.append(_table(decorated))
        case FunctionKind.AGGREGATE:
            aggregate = known if isinstance(known, AggregateFunction) and known.path != BUILT_IN else None
            if aggregate is None:
                aggregate = AggregateFunction(**common, category="AGGREGATE", is_undoable=hasattr(decorated, "undo"))
                registry.add(aggregate)
            aggregate.overloads.extend(_aggregate(decorated))


def _parameters(function: Callable[..., Any], skip: int) -> list[tuple[Parameter, Any]]:
    hints = get_type_hints(function, include_extras=True)
    found = []
    for parameter in list(inspect.signature(function).parameters.values())[skip:]:
        if parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
            raise FunctionLookupError(f"{function.__name__}: SQL has no keyword arguments ({parameter.name})")
        if parameter.name not in hints:
            raise FunctionLookupError(f"{function.__name__}: the parameter {parameter.name} has no annotation")
        annotation = hints[parameter.name]
        is_variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        found.append((Parameter(parameter.name, type_of_annotation(annotation), is_variadic), annotation))
    return found


def _choices(function: Callable[..., Any], parameters: Sequence[Any], skip: int) -> list[Sequence[Any]]:
    """The parameters that a call may have: those with defaults can be left out, from the last on."""
    declared = list(inspect.signature(function).parameters.values())[skip:]
    optional = sum(parameter.default is not inspect.Parameter.empty for parameter in declared)
    return [parameters[: len(parameters) - left_out] for left_out in range(optional + 1)]


def _returned_type(function: Callable[..., Any]) -> Any:
    hints = get_type_hints(function, include_extras=True)
    if "return" not in hints:
        raise FunctionLookupError(f"{function.__name__}: the result has no annotation")
    return hints["return"]


def _signature(parameters: Sequence[tuple[Parameter, Any]], result: SqlType) -> Signature:
    plain = tuple(parameter for parameter, _ in parameters)
    text = ", ".join(f"{each.name} {type_text(each.type)}{'...' if each.is_variadic else ''}" for each in plain)
    return Signature(f"({text}) -> {type_text(result)}", plain, result)


def _converting(function: Callable[..., Any], annotations: Sequence[Any], returned: Any) -> Callable[..., Any]:
    """The function with values as Python code expects them, where that differs."""
    before = [to_python(annotation) for annotation in annotations]
    after = from_python(returned)
    if after is None and not any(before):
        return function

    def call(*arguments: Any) -> Any:
        last = len(before) - 1
        given = (
            value if (convert := before[min(place, last)]) is None else convert(value)
            for place, value in enumerate(arguments)
        )
        result = function(*given)
        return result if after is None else after(result)

    return call


def _scalar(function: Callable[..., Any], mark: _Mark) -> list[ScalarOverload]:
    parameters, returned = _parameters(function, 0), _returned_type(function)
    annotations = [annotation for _, annotation in parameters]
    return [
        ScalarOverload(
            signature=_signature(chosen, type_of_annotation(returned)),
            implementation=_converting(function, annotations, returned),
            returns=mark.returns,
            is_strict=not any(map(allows_none, annotations)),
            is_typed=False,
            whole_column=mark.whole_column,
        )
        for chosen in _choices(function, parameters, 0)
    ]


def _table(function: Callable[..., Any]) -> TableOverload:
    parameters, returned = _parameters(function, 0), _returned_type(function)
    rows = type_of_annotation(returned)
    if get_origin(returned) is not list or not isinstance(rows, ArrayType):
        raise FunctionLookupError(
            f"{function.__name__}: a table function returns a list of rows: annotate -> list[...]"
        )
    convert = _converting(function, [annotation for _, annotation in parameters], returned)
    is_strict = not any(allows_none(annotation) for _, annotation in parameters)

    def implementation(*arguments: Any) -> Any:
        if is_strict and None in arguments:
            return []
        try:
            return convert(*arguments)
        except Exception as problem:  # a mistake in it costs one record, as in scalar functions
            raise ExpressionError(f"{type(problem).__name__}: {problem}") from problem

    return TableOverload(_signature(parameters, rows.element), implementation)


def _aggregate(made: Any) -> list[AggregateOverload]:
    for method in ("initial", "add", "merge"):
        if not hasattr(made, method):
            raise FunctionLookupError(f"{made.__name__}: an aggregate function needs a method {method}")
    arguments = _parameters(made.add, 2)
    constants = _parameters(made.__init__, 1) if made.__init__ is not object.__init__ else []
    state = type_of_annotation(_returned_type(made.initial))
    returned = _returned_type(made.result if hasattr(made, "result") else made.initial)
    result = type_of_annotation(returned)
    annotations = [annotation for _, annotation in arguments]
    is_strict = not any(map(allows_none, annotations))

    def build(types: Sequence[SqlType | None], given: Sequence[Value], settings: Settings) -> Aggregation:
        instance = made(*given)
        bindings: dict[str, SqlType] = {}
        for (parameter, _), kind in zip(arguments, types, strict=False):
            if kind is not None and has_generics(parameter.type):
                bind(parameter.type, kind, bindings)
        return Aggregation(
            initial=instance.initial,
            add=_step(instance.add, annotations, is_strict),
            merge=instance.merge,
            result=_finish(instance, returned),
            result_type=substitute(result, bindings),
            state_type=substitute(state, bindings),
            undo=_step(instance.undo, annotations, is_strict) if hasattr(instance, "undo") else None,
        )

    choices = _choices(made.__init__, constants, 1) if constants else [constants]
    return [AggregateOverload(_signature([*arguments, *chosen], result), build, len(chosen)) for chosen in choices]


def _step(method: Callable[..., Any], annotations: Sequence[Any], is_strict: bool) -> Callable[..., Any]:
    before = [to_python(annotation) for annotation in annotations]

    def step(state: Any, *arguments: Any) -> Any:
        if is_strict and None in arguments:
            return state
        given = (
            value if convert is None else convert(value) for convert, value in zip(before, arguments, strict=False)
        )
        return method(state, *given)

    return step


def _finish(instance: Any, returned: Any) -> Callable[[Any], Any]:
    finish = cast("Callable[[Any], Any]", getattr(instance, "result", lambda state: state))
    after = from_python(returned)
    return finish if after is None else lambda state: after(finish(state))
