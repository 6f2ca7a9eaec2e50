"""Functions described, for SHOW FUNCTIONS and DESCRIBE FUNCTION. Start at `describe`."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.pipeline.cores.sql.functions.registry import FunctionKind, FunctionRegistry
from moldau.pipeline.cores.sql.functions.signatures import Signature, type_text

__all__ = [
    "ArgumentDescription",
    "FunctionDescription",
    "FunctionName",
    "Variation",
    "describe",
    "function_names",
    "functions_table",
]


@dataclass(frozen=True, slots=True)
class ArgumentDescription:
    """A parameter."""

    name: str
    type: str
    is_variadic: bool


@dataclass(frozen=True, slots=True)
class Variation:
    """One signature of a function."""

    arguments: tuple[ArgumentDescription, ...]
    return_type: str
    description: str


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """A function with all its signatures."""

    name: str
    description: str
    author: str
    version: str
    path: str
    kind: FunctionKind
    variations: tuple[Variation, ...]


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A line of SHOW FUNCTIONS."""

    name: str
    kind: FunctionKind
    category: str


def function_names(functions: FunctionRegistry) -> list[FunctionName]:
    """All functions, by name."""
    return [FunctionName(each.name.upper(), each.kind, each.category) for each in functions]


def describe(functions: FunctionRegistry, name: str) -> FunctionDescription:
    """The function of that name; raises FunctionLookupError if there is none."""
    function = functions.get(name)
    return FunctionDescription(
        name=function.name.upper(),
        description=function.description,
        author=function.author,
        version=function.version,
        path=function.path,
        kind=function.kind,
        variations=tuple(_variation(overload.signature, function.description) for overload in function.overloads),
    )


def functions_table(functions: FunctionRegistry) -> str:
    """All functions as a Markdown table, for the documentation."""
    rows = ["| function | kind | signatures | what it gives |", "|---|---|---|---|"]
    for function in functions:
        shown = "<br>".join(f"`{_signature_text(overload.signature)}`" for overload in function.overloads)
        about = function.description.replace("|", "\\|")
        rows.append(f"| {function.name.upper()} | {function.kind.value.lower()} | {shown} | {about} |")
    return "\n".join(rows)


def _signature_text(signature: Signature) -> str:
    given = ", ".join(
        f"{each.name} {type_text(each.type)}{'...' if each.is_variadic else ''}" for each in signature.parameters
    )
    return f"({given}) -> {type_text(signature.result)}"


def _variation(signature: Signature, description: str) -> Variation:
    arguments = tuple(
        ArgumentDescription(parameter.name, type_text(parameter.type), parameter.is_variadic)
        for parameter in signature.parameters
    )
    return Variation(arguments, type_text(signature.result), description)
