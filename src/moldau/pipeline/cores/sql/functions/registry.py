"""The functions that SQL can call: scalar, aggregate and table functions, looked up by name in any case.

A module of functions declares each with a decorator of `BUILTIN`; its docstring is the description that DESCRIBE
FUNCTION shows. A registry with a parent adds functions of its own (of users) to it. Start at `FunctionRegistry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from moldau.formats.types import SqlType, Value
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError, substitute
from moldau.pipeline.cores.sql.functions.signatures import ReturnRule, Signature, parse_signature
from moldau.pipeline.ir.sql.libraries import FunctionLibrary

__all__ = [
    "BUILTIN",
    "BUILT_IN",
    "AggregateFunction",
    "AggregateOverload",
    "Aggregation",
    "FunctionKind",
    "FunctionRegistry",
    "ScalarFunction",
    "ScalarOverload",
    "Settings",
    "TableFunction",
    "TableOverload",
    "state_is_result",
]

Settings: TypeAlias = Mapping[str, object]
"""Properties that functions look at, such as `ksql.functions.collect_list.limit`."""

Implementation: TypeAlias = Callable[..., Any]
ImplementationT = TypeVar("ImplementationT", bound=Implementation)


BUILT_IN = "internal"
"""The path of functions that come with the language."""


class FunctionKind(Enum):
    """What a function is applied to."""

    SCALAR = "SCALAR"
    AGGREGATE = "AGGREGATE"
    TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class ScalarOverload:
    """One signature of a scalar function.

    Strict ones give NULL for a NULL argument without being called. Typed ones are factories: called once per
    expression with the types of the arguments and of the result, they return the function of values.
    """

    signature: Signature
    implementation: Implementation
    returns: ReturnRule | None
    is_strict: bool
    is_typed: bool
    whole_column: Implementation | None = None
    """The same over Arrow columns, for engines that can use it."""

    def result_type(self, arguments: Sequence[SqlType | None], bindings: Mapping[str, SqlType]) -> SqlType:
        """The type of the result for arguments of these types."""
        return self.returns(arguments) if self.returns is not None else substitute(self.signature.result, bindings)

    def bound(self, arguments: Sequence[SqlType | None], result: SqlType) -> Implementation:
        """The function of values."""
        made: Implementation = self.implementation(arguments, result) if self.is_typed else self.implementation
        return made


def state_is_result(state: Any) -> Any:
    """The result of aggregates whose state is what they show; known by its identity, so that it need not be called."""
    return state


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate function bound to types and constants. States are values of `state_type` and are never changed."""

    initial: Callable[[], Value]
    add: Callable[..., Value]
    """`add(state, *arguments)` is the next state."""
    merge: Callable[[Any, Any], Value]
    result: Callable[[Any], Value]
    result_type: SqlType
    state_type: SqlType
    undo: Callable[..., Value] | None = None
    """`undo(state, *arguments)` takes back what `add` did; None where a table cannot be aggregated with it."""


AggregationFactory: TypeAlias = Callable[[Sequence[SqlType | None], Sequence[Value], Settings], Aggregation]


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """One signature of an aggregate function; its last `constant_count` parameters must be literals."""

    signature: Signature
    build: AggregationFactory
    constant_count: int


@dataclass(frozen=True, slots=True)
class TableOverload:
    """One signature of a table function: arguments in, a list of values out."""

    signature: Signature
    implementation: Implementation
    returns: ReturnRule | None = None

    def result_type(self, arguments: Sequence[SqlType | None], bindings: Mapping[str, SqlType]) -> SqlType:
        """The type of the rows for arguments of these types."""
        return self.returns(arguments) if self.returns is not None else substitute(self.signature.result, bindings)


@dataclass(slots=True)
class _Function:
    name: str
    """As ksqlDB spells it in messages."""
    description: str
    category: str
    author: str = "moldau"
    version: str = ""
    path: str = BUILT_IN


@dataclass(slots=True)
class ScalarFunction(_Function):
    """A function of the values of one row."""

    overloads: list[ScalarOverload] = field(default_factory=list)
    kind = FunctionKind.SCALAR


@dataclass(slots=True)
class AggregateFunction(_Function):
    """A function over the rows of a group."""

    overloads: list[AggregateOverload] = field(default_factory=list)
    is_undoable: bool = False
    """Whether rows can be taken back, which aggregating a table needs."""
    kind = FunctionKind.AGGREGATE


@dataclass(slots=True)
class TableFunction(_Function):
    """A function that makes several rows of one."""

    overloads: list[TableOverload] = field(default_factory=list)
    kind = FunctionKind.TABLE


AnyFunction: TypeAlias = ScalarFunction | AggregateFunction | TableFunction


class FunctionRegistry:
    """Functions by name."""

    def __init__(self, parent: FunctionRegistry | None = None, library: FunctionLibrary | None = None) -> None:
        """`library` is the text of the functions that this registry adds to its parent."""
        self._parent = parent
        self.library = library
        self._functions: dict[str, AnyFunction] = {}

    # --- declaring

    def scalar(
        self,
        name: str,
        *signatures: str,
        category: str = "OTHER",
        returns: ReturnRule | None = None,
        is_strict: bool = True,
        is_typed: bool = False,
    ) -> Callable[[ImplementationT], ImplementationT]:
        """Declare the decorated function as the implementation of these signatures of a scalar function."""

        def declare(implementation: ImplementationT) -> ImplementationT:
            known = self._functions.get(name.upper())
            if not isinstance(known, ScalarFunction):
                known = ScalarFunction(name, _description(implementation), category)
                self.add(known)
            known.overloads.extend(
                ScalarOverload(parse_signature(text), implementation, returns, is_strict, is_typed)
                for text in signatures
            )
            return implementation

        return declare

    def aggregate(
        self, name: str, *signatures: str, constant_count: int = 0, is_undoable: bool = False
    ) -> Callable[[ImplementationT], ImplementationT]:
        """Declare the decorated factory as the implementation of these signatures of an aggregate function."""

        def declare(build: ImplementationT) -> ImplementationT:
            known = self._functions.get(name.upper())
            if not isinstance(known, AggregateFunction):
                known = AggregateFunction(name, _description(build), "AGGREGATE", is_undoable=is_undoable)
                self.add(known)
            known.overloads.extend(
                AggregateOverload(parse_signature(text), build, constant_count) for text in signatures
            )
            return build

        return declare

    def table(self, name: str, *signatures: str) -> Callable[[ImplementationT], ImplementationT]:
        """Declare the decorated function as the implementation of these signatures of a table function."""

        def declare(implementation: ImplementationT) -> ImplementationT:
            known = self._functions.get(name.upper())
            if not isinstance(known, TableFunction):
                known = TableFunction(name, _description(implementation), "TABLE")
                self.add(known)
            known.overloads.extend(TableOverload(parse_signature(text), implementation) for text in signatures)
            return implementation

        return declare

    def add(self, function: AnyFunction) -> None:
        """Add a function under its name; a function of the parent cannot be replaced."""
        if self._parent is not None and self._parent.find(function.name) is not None:
            raise FunctionLookupError(f"the function {function.name.upper()} is built in and cannot be replaced")
        self._functions[function.name.upper()] = function

    # --- looking up

    def find(self, name: str) -> AnyFunction | None:
        """The function of that name, None if there is none."""
        found = self._functions.get(name.upper())
        if found is None and self._parent is not None:
            return self._parent.find(name)
        return found

    def get(self, name: str) -> AnyFunction:
        """The function of that name."""
        found = self.find(name)
        if found is None:
            raise FunctionLookupError(f"Can't find any functions with the name '{name}'")
        return found

    def library_of(self, name: str) -> FunctionLibrary | None:
        """The library that a function is from; None for a built-in one."""
        return self.library if name.upper() in self._functions else None

    def is_aggregate(self, name: str) -> bool:
        """Whether an aggregate function has that name."""
        return isinstance(self.find(name), AggregateFunction)

    def is_table_function(self, name: str) -> bool:
        """Whether a table function has that name."""
        return isinstance(self.find(name), TableFunction)

    def scalar_overload(self, name: str, signature: str) -> ScalarOverload:
        """The overload that a typed call means."""
        function = self.get(name)
        if isinstance(function, ScalarFunction):
            for overload in function.overloads:
                if overload.signature.text == signature:
                    return overload
        raise FunctionLookupError(f"the function {name} has no signature {signature}")

    def aggregate_overload(self, name: str, signature: str) -> AggregateOverload:
        """The overload that a typed aggregate means."""
        function = self.get(name)
        if isinstance(function, AggregateFunction):
            for overload in function.overloads:
                if overload.signature.text == signature:
                    return overload
        raise FunctionLookupError(f"the function {name} has no signature {signature}")

    def table_overload(self, name: str, signature: str) -> TableOverload:
        """The overload that a typed table function means."""
        function = self.get(name)
        if isinstance(function, TableFunction):
            for overload in function.overloads:
                if overload.signature.text == signature:
                    return overload
        raise FunctionLookupError(f"the function {name} has no signature {signature}")

    def __iter__(self) -> Iterator[AnyFunction]:
        """All functions, by name."""
        known = {function.name.upper(): function for function in self._parent or ()} | self._functions
        return iter(known[name] for name in sorted(known))


def _description(implementation: Implementation) -> str:
    return " ".join((implementation.__doc__ or "").split())


BUILTIN = FunctionRegistry()
"""The functions of ksqlDB; complete once `functions.builtin` is imported."""
