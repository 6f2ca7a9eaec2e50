"""The keys that a pull query asks for, so that only their rows are read. Start at `sought_keys`.

WHERE is read as alternatives, each of them a list of conditions that must all hold. If each alternative fixes every key
column by `=` (IN is a short form of several), the keys are known. One bound on a key of text is a range scan; anything
else reads the whole table, if the settings allow it. Whether a row fits is decided by the plan alone, by values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from moldau.formats.types import STRING, SqlType, Value
from moldau.ksql.schemas import row_serde
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.cores.sql.processing_log import ListLog
from moldau.pipeline.cores.sql.rows import compile_row
from moldau.pipeline.ksql.catalogue.sources import WINDOW_BOUNDS, Source, WindowKind
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import (
    Between,
    ColumnReference,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    Like,
    Logical,
    LogicalOperator,
    Not,
    NullLiteral,
)
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.syntax.statements import Query
from moldau.pipeline.ksql.typing.typing import typed_constant

__all__ = ["key_constant", "sought_keys"]

MAX_ALTERNATIVES = 10_000
"""More alternatives than this are cheaper to find by reading the table, and conditions can multiply without end."""
TABLE_SCAN, RANGE_SCAN = "ksql.query.pull.table.scan.enabled", "ksql.query.pull.range.scan.enabled"
BOUNDS = frozenset(column.name for column in WINDOW_BOUNDS)
_RANGE = frozenset(
    {
        ComparisonOperator.LESS_THAN,
        ComparisonOperator.LESS_THAN_OR_EQUAL,
        ComparisonOperator.GREATER_THAN,
        ComparisonOperator.GREATER_THAN_OR_EQUAL,
    }
)
_OPPOSITES = {
    ComparisonOperator.EQUAL: ComparisonOperator.NOT_EQUAL,
    ComparisonOperator.NOT_EQUAL: ComparisonOperator.EQUAL,
    ComparisonOperator.LESS_THAN: ComparisonOperator.GREATER_THAN_OR_EQUAL,
    ComparisonOperator.GREATER_THAN_OR_EQUAL: ComparisonOperator.LESS_THAN,
    ComparisonOperator.GREATER_THAN: ComparisonOperator.LESS_THAN_OR_EQUAL,
    ComparisonOperator.LESS_THAN_OR_EQUAL: ComparisonOperator.GREATER_THAN,
}
Conditions = tuple[Expression, ...]


def sought_keys(
    query: Query, source: Source, properties: Mapping[str, object], settings: KsqlSettings
) -> list[bytes] | None:
    """The serialized keys that can match, None if any row can; raises `KsqlError` where that is not allowed."""
    rules = _Rules(source, _is_on(properties, TABLE_SCAN), _is_on(properties, RANGE_SCAN))
    if query.where is None:
        rules.refuse_unless_scanned("Missing WHERE clause")
        rules.check_scan()
        return None
    alternatives = _alternatives(query.where)
    if alternatives is None:
        rules.check_scan()
        return None
    read = [_read(conditions, rules) for conditions in alternatives]
    if all(one.is_look_up for one in read):
        return _keys(read, source, settings)
    is_range = len(read) == 1 and read[0].is_range and not read[0].needs_scan and source.window is None
    if not is_range:
        rules.check_scan()
    return None


def _keys(read: list[_Alternative], source: Source, settings: KsqlSettings) -> list[bytes]:
    serde = row_serde(source.key_format.for_key(source.schema.key), source.schema.key, settings)
    keys: dict[bytes, None] = {}
    for alternative in read:
        key = serde.serialize(source.topic, tuple(alternative.fixed[column.name] for column in source.schema.key))
        if key is not None:
            keys[key] = None
    return list(keys)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What may be read, and what is said where that is not enough."""

    source: Source
    may_scan: bool
    may_scan_range: bool

    def refuse_unless_scanned(self, reason: str) -> None:
        """Raise unless the table may be read as a whole, which makes every condition possible."""
        if not self.may_scan:
            raise KsqlError(
                f"{reason}. Pull queries need a WHERE clause that fixes each key column by an equality, such as "
                f"SELECT * FROM X WHERE <key-column> = Y; other conditions need {TABLE_SCAN}=true."
            )

    def check_scan(self) -> None:
        """Raise unless the table may be read as a whole."""
        if not self.may_scan:
            raise KsqlError(
                f"Query requires table scan to be enabled. Table scans can be enabled by setting {TABLE_SCAN}=true"
            )
        window = self.source.window
        if window is not None and window.kind is WindowKind.SESSION:
            raise KsqlError("Table scan unsupported on session tables: give all key columns by = in WHERE")


@dataclass(slots=True)
class _Alternative:
    """What one alternative says of the key."""

    fixed: dict[str, Value] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    is_range: bool = False
    needs_scan: bool = False

    @property
    def is_look_up(self) -> bool:
        return not (self.is_range or self.needs_scan)


def _read(conditions: Conditions, rules: _Rules) -> _Alternative:
    found = _Alternative()
    for condition in conditions:
        _take(condition, found, rules)
    if found.needs_scan:
        return found
    key = [column.name for column in rules.source.schema.key]
    if not found.seen:
        rules.refuse_unless_scanned(f"WHERE clause missing key column for disjunct: {_text(conditions)}")
        found.needs_scan = True
    elif len(found.seen) != len(key):
        given = [name for name in key if name in found.seen]
        rules.refuse_unless_scanned(
            "Multi-column sources must specify every key in the WHERE clause. "
            f"Specified: [{', '.join(given)}] Expected: [{', '.join(map(str, rules.source.schema.key))}]"
        )
        found.needs_scan = True
    elif found.is_range and (len(key) > 1 or rules.source.schema.key[0].type != STRING or not rules.may_scan_range):
        found.needs_scan = True
    return found


def _take(condition: Expression, found: _Alternative, rules: _Rules) -> None:
    def scan(reason: str) -> None:
        rules.refuse_unless_scanned(reason)
        found.needs_scan = True

    match condition:
        case (
            Comparison(left=ColumnReference() as column, right=value)
            | Comparison(left=value, right=ColumnReference() as column)
        ):
            _take_comparison(condition, column, value, found, rules)
        case Comparison():
            scan(f"A comparison must directly reference a key column: {render(condition)}")
        case Like():
            scan("Like condition must be between strings, and it is no key look-up")
        case _:
            scan(f"Unsupported expression in WHERE clause: {render(condition)}")


def _take_comparison(
    condition: Comparison, column: ColumnReference, value: Expression, found: _Alternative, rules: _Rules
) -> None:
    types = {one.name: one.type for one in rules.source.schema.key}
    if column.name not in types:
        return  # a bound of the window or a value: the plan decides
    if isinstance(value, NullLiteral):
        raise KsqlError(f"Primary key columns can not be NULL: {render(condition)}")
    try:
        constant = key_constant(value, types[column.name])
    except KsqlError:
        rules.refuse_unless_scanned("A comparison must be between a key column and a resolvable expression")
        found.needs_scan = True
        return
    if column.name in found.seen:
        rules.refuse_unless_scanned(
            "A comparison condition on the key column cannot be combined with other comparisons such as an IN predicate"
        )
        found.needs_scan = True
        return
    if condition.operator in _RANGE:
        found.is_range = True
    elif condition.operator is not ComparisonOperator.EQUAL:
        rules.refuse_unless_scanned(f"Bound on '{column.name}' must currently be '='")
        found.needs_scan = True
    found.seen.add(column.name)
    found.fixed[column.name] = constant


def _alternatives(where: Expression) -> list[Conditions] | None:
    """The condition in disjunctive form; None if that has more than `MAX_ALTERNATIVES` parts."""
    match where:
        case Logical(operator=LogicalOperator.OR, left=left, right=right):
            one, other = _alternatives(left), _alternatives(right)
            found = None if one is None or other is None else [*one, *other]
        case Logical(operator=LogicalOperator.AND, left=left, right=right):
            one, other = _alternatives(left), _alternatives(right)
            if one is None or other is None or len(one) * len(other) > MAX_ALTERNATIVES:
                return None
            found = [first + second for first in one for second in other]
        case In(value=value, options=options):
            found = [(Comparison(ComparisonOperator.EQUAL, value, option),) for option in options]
        case Between(value=value, low=low, high=high):
            at_least = Comparison(ComparisonOperator.GREATER_THAN_OR_EQUAL, value, low)
            found = [(at_least, Comparison(ComparisonOperator.LESS_THAN_OR_EQUAL, value, high))]
        case Not(value=Comparison() as comparison) if comparison.operator in _OPPOSITES:
            found = [(replace(comparison, operator=_OPPOSITES[comparison.operator]),)]
        case _:
            found = [(where,)]
    return found if found is not None and len(found) <= MAX_ALTERNATIVES else None


def _text(conditions: Conditions) -> str:
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = Logical(LogicalOperator.AND, joined, condition)
    return render(joined)


def key_constant(expression: Expression, sql_type: SqlType) -> Value:
    """The value of an expression without columns; raises `KsqlError` for one that is none of this type."""
    typed = typed_constant(expression, sql_type)
    log = ListLog()
    (value,) = compile_row([typed], log)(())
    if log.entries or value is None:
        raise KsqlError(f"{render(expression)} is not a key")
    return value


def _is_on(properties: Mapping[str, object], name: str) -> bool:
    return str(properties.get(name, "true")).lower() == "true"
