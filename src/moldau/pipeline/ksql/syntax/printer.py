"""The printer of expressions: a tree becomes text in the one form in which ksqlDB prints it.

Every operator is in parentheses, so the text says how the expression was understood. `render` leaves names bare, as
messages quote them; `render_sql` quotes names that need it, and what it gives parses to the same tree again.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from moldau.formats.types import ArrayType, MapType, SqlType, StructType
from moldau.pipeline.ksql.syntax import expressions as tree
from moldau.pipeline.ksql.syntax.tokens import DIGIT_IDENTIFIER, IDENTIFIER, NON_RESERVED_WORDS, tokenize

__all__ = ["quote_if_needed", "render", "render_sql", "render_type", "text_literal"]

NameStyle = Callable[[str], str]

_PLAIN_KINDS: Final = NON_RESERVED_WORDS | {IDENTIFIER, DIGIT_IDENTIFIER}


def render(expression: tree.Expression) -> str:
    """The expression as messages quote it: names are bare, whatever they hold."""
    return _Printer(str).render(expression)


def render_sql(expression: tree.Expression) -> str:
    """The expression as a statement writes it: names are quoted where they must be."""
    return _Printer(quote_if_needed).render(expression)


@lru_cache(maxsize=1024)
def quote_if_needed(name: str) -> str:
    """The name as a statement must write it: in back quotes unless it means the same without."""
    tokens = tokenize(name)
    is_plain = name == name.upper() and tokens.text(0) == name and tokens.kinds[0] in _PLAIN_KINDS
    return name if is_plain else _quote(name)


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def text_literal(value: str) -> str:
    """The text in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def render_type(sql_type: SqlType, name_style: NameStyle = quote_if_needed) -> str:
    """The type, with the names of its fields in the given style."""
    match sql_type:
        case ArrayType():
            return f"ARRAY<{render_type(sql_type.element, name_style)}>"
        case MapType():
            return f"MAP<{render_type(sql_type.key, name_style)}, {render_type(sql_type.value, name_style)}>"
        case StructType():
            fields = (f"{name_style(field.name)} {render_type(field.type, name_style)}" for field in sql_type.fields)
            return f"STRUCT<{', '.join(fields)}>"
        case tree.NamedType():
            return name_style(sql_type.name)
        case _:
            return str(sql_type)


def _scientific(value: float) -> str:
    """A DOUBLE always with its exponent: without one it would read as a DECIMAL."""
    number = decimal.Decimal(repr(value))
    sign, digits, _ = number.as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    exponent = number.adjusted() if number else 0
    return f"{'-' if sign else ''}{text[0]}{fraction}E{exponent}"


class _Printer:
    """Prints expressions with names in one style."""

    def __init__(self, name_style: NameStyle) -> None:
        self._name = name_style
        self._is_sql = name_style is not str

    def render(self, expression: tree.Expression) -> str:
        """The text of an expression."""
        return _RULES[type(expression)](self, expression)

    def _join(self, expressions: Iterable[tree.Expression]) -> str:
        return ", ".join([self.render(expression) for expression in expressions])

    # --- literals ------------------------------------------------------------------------------------------------

    def _null(self, _: tree.NullLiteral) -> str:
        return "null"

    def _boolean(self, node: tree.BooleanLiteral) -> str:
        return "true" if node.value else "false"

    def _integer(self, node: tree.IntegerLiteral | tree.LongLiteral) -> str:
        return str(node.value)

    def _double(self, node: tree.DoubleLiteral) -> str:
        return _scientific(node.value)

    def _decimal(self, node: tree.DecimalLiteral) -> str:
        if not self._is_sql:
            return str(node.value)
        plain = format(node.value, "f")
        return plain if "." in plain else f"{plain}."

    def _text(self, node: tree.StringLiteral) -> str:
        return text_literal(node.value)

    def _unit(self, node: tree.IntervalUnit) -> str:
        return node.unit

    # --- names ---------------------------------------------------------------------------------------------------

    def _column(self, node: tree.ColumnReference) -> str:
        name = self._name(node.name)
        if node.source is None:
            return name
        if self._is_sql and name[0].isdigit():  # after a point, digits would be a fraction
            name = _quote(name)
        return f"{self._name(node.source)}.{name}"

    def _lambda_variable(self, node: tree.LambdaVariable) -> str:
        return self._name(node.name)

    # --- operators -----------------------------------------------------------------------------------------------

    def _signed(self, node: tree.Signed) -> str:
        value = self.render(node.value)
        if self._is_sql and value[0] in "0123456789.":
            value = f"({value})"  # a bare number would take the sign as its own
        separator = " " if value.startswith("-") and node.sign is tree.Sign.MINUS else ""  # `--` starts a comment
        return f"{node.sign.value}{separator}{value}"

    def _binary(self, node: tree.Arithmetic | tree.Comparison | tree.Logical) -> str:
        return f"({self.render(node.left)} {node.operator.value} {self.render(node.right)})"

    def _not(self, node: tree.Not) -> str:
        return f"(NOT {self.render(node.value)})"

    def _is_null(self, node: tree.IsNull) -> str:
        return f"({self.render(node.value)} IS {'NOT ' if node.is_negated else ''}NULL)"

    def _between(self, node: tree.Between) -> str:
        return f"({self.render(node.value)} BETWEEN {self.render(node.low)} AND {self.render(node.high)})"

    def _in(self, node: tree.In) -> str:
        return f"({self.render(node.value)} IN ({self._join(node.options)}))"

    def _like(self, node: tree.Like) -> str:
        escape = "" if node.escape is None else f" ESCAPE {text_literal(node.escape)}"
        return f"({self.render(node.value)} LIKE {self.render(node.pattern)}{escape})"

    def _when(self, node: tree.When) -> str:
        return f"WHEN {self.render(node.condition)} THEN {self.render(node.result)}"

    def _case(self, node: tree.Case) -> str:
        operand = [] if node.operand is None else [self.render(node.operand)]
        default = [] if node.default is None else ["ELSE", self.render(node.default)]
        return f"({' '.join(['CASE', *operand, *map(self._when, node.whens), *default, 'END'])})"

    def _cast(self, node: tree.Cast) -> str:
        return f"CAST({self.render(node.value)} AS {render_type(node.type, self._name)})"

    # --- composed values -----------------------------------------------------------------------------------------

    def _base(self, base: tree.Expression) -> str:
        text = self.render(base)
        return f"({text})" if self._is_sql and isinstance(base, tree.Signed) else text

    def _subscript(self, node: tree.Subscript) -> str:
        return f"{self._base(node.base)}[{self.render(node.index)}]"

    def _dereference(self, node: tree.Dereference) -> str:
        return f"{self._base(node.base)}->{self._name(node.field_name)}"

    def _array(self, node: tree.CreateArray) -> str:
        return f"ARRAY[{self._join(node.items)}]"

    def _map(self, node: tree.CreateMap) -> str:
        return f"MAP({', '.join([f'{self.render(key)}:={self.render(value)}' for key, value in node.entries])})"

    def _struct(self, node: tree.CreateStruct) -> str:
        return f"STRUCT({', '.join([f'{self._name(name)}:={self.render(value)}' for name, value in node.fields])})"

    # --- functions -----------------------------------------------------------------------------------------------

    def _call(self, node: tree.FunctionCall) -> str:
        arguments = "*" if node.has_star else self._join(node.arguments)
        is_constructor = self._is_sql and node.name in ("MAP", "STRUCT")
        return f"{f'`{node.name}`' if is_constructor else self._name(node.name)}({arguments})"

    def _lambda(self, node: tree.Lambda) -> str:
        return f"({', '.join(map(self._name, node.parameters))}) => {self.render(node.body)}"


_RULES: Final[dict[type[tree.Expression], Callable[[_Printer, Any], str]]] = {
    tree.NullLiteral: _Printer._null,
    tree.BooleanLiteral: _Printer._boolean,
    tree.IntegerLiteral: _Printer._integer,
    tree.LongLiteral: _Printer._integer,
    tree.DoubleLiteral: _Printer._double,
    tree.DecimalLiteral: _Printer._decimal,
    tree.StringLiteral: _Printer._text,
    tree.IntervalUnit: _Printer._unit,
    tree.ColumnReference: _Printer._column,
    tree.LambdaVariable: _Printer._lambda_variable,
    tree.Signed: _Printer._signed,
    tree.Arithmetic: _Printer._binary,
    tree.Comparison: _Printer._binary,
    tree.Logical: _Printer._binary,
    tree.Not: _Printer._not,
    tree.IsNull: _Printer._is_null,
    tree.Between: _Printer._between,
    tree.In: _Printer._in,
    tree.Like: _Printer._like,
    tree.When: _Printer._when,
    tree.Case: _Printer._case,
    tree.Cast: _Printer._cast,
    tree.Subscript: _Printer._subscript,
    tree.Dereference: _Printer._dereference,
    tree.CreateArray: _Printer._array,
    tree.CreateMap: _Printer._map,
    tree.CreateStruct: _Printer._struct,
    tree.FunctionCall: _Printer._call,
    tree.Lambda: _Printer._lambda,
}
