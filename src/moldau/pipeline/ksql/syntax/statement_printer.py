"""The printer of statements: what SHOW, DESCRIBE and messages give back. Start at `render_statement`.

The form is ksqlDB's: a clause per line, aliases written out, properties in the order of their names. The text parses
to the same statement; like ksqlDB's it ends in `;` only where a statement declares columns or a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from moldau.pipeline.ksql.syntax import statements as tree
from moldau.pipeline.ksql.syntax.expressions import Expression
from moldau.pipeline.ksql.syntax.printer import quote_if_needed as _name
from moldau.pipeline.ksql.syntax.printer import render_sql, render_type, text_literal

__all__ = ["render_statement"]


def render_statement(statement: tree.Statement) -> str:
    """The text of a statement."""
    return _RULES[type(statement)](statement)


def _words(*words: str | bool | None) -> str:
    """The given words with spaces between; what is no word comes from `condition and word` and is left out."""
    return " ".join(word for word in words if isinstance(word, str) and word)


# --- parts -------------------------------------------------------------------------------------------------------


def _properties(properties: Iterable[tree.Property]) -> str:
    shown = [f"{_property_name(entry.name)}={render_sql(entry.value)}" for entry in _by_name(properties)]
    return f"WITH ({', '.join(shown)})" if shown else ""


def _by_name(properties: Iterable[tree.Property]) -> list[tree.Property]:
    return sorted(properties, key=lambda entry: entry.name)


def _property_name(name: str) -> str:
    """The name bare, or in single quotes: connectors' properties have dots."""
    return name if _name(name) == name else text_literal(name)


def _columns(columns: Iterable[tree.ColumnDefinition]) -> str:
    shown = [_column(column) for column in columns]
    return f"({', '.join(shown)})" if shown else ""


def _column(column: tree.ColumnDefinition) -> str:
    header = "" if column.header_key is None else f"({text_literal(column.header_key)})"
    return _words(_name(column.name), render_type(column.type), column.constraint.value + header)


def _exact_name(name: str) -> str:
    """The name of a topic or subject: its case counts, so it is always quoted."""
    return text_literal(name)


def _extended(statement: tree.Show | tree.DescribeSource | tree.DescribeSources) -> str:
    return "EXTENDED" if statement.is_extended else ""


# --- queries -----------------------------------------------------------------------------------------------------


def _query(query: tree.Query) -> str:
    lines = [
        _select(query.select),
        f"FROM {_source(query.source)}",
        *map(_join, query.joins),
        query.window and f"WINDOW {_window(query.window)}",
        query.where and f"WHERE {render_sql(query.where)}",
        query.group_by is not None and f"GROUP BY {_keys(query.group_by)}",
        query.partition_by is not None and f"PARTITION BY {_keys(query.partition_by)}",
        query.having and f"HAVING {render_sql(query.having)}",
        query.emit and f"EMIT {query.emit.value}",
        query.limit is not None and f"LIMIT {query.limit}",
    ]
    return "\n".join(line for line in lines if isinstance(line, str))


def _select(items: tuple[tree.SelectItem, ...]) -> str:
    shown = [_select_item(item) for item in items]
    return f"SELECT {shown[0]}" if len(shown) == 1 else "SELECT\n  " + ",\n  ".join(shown)


def _select_item(item: tree.SelectItem) -> str:
    match item:
        case tree.SelectAll():
            return "*" if item.source is None else f"{_name(item.source)}.*"
        case tree.SelectStructAll():
            return f"{render_sql(item.base)}->*"
        case tree.SelectExpression():
            return _words(render_sql(item.expression), item.alias is not None and _name(item.alias))


def _source(source: tree.SourceReference) -> str:
    return f"{_name(source.name)} {_name(source.alias)}"


def _join(join: tree.Join) -> str:
    within = None if join.within is None else _within(join.within)
    condition = f"ON ({render_sql(join.condition)})"
    return _words(join.kind.value, "JOIN", _source(join.source), within, condition)


def _within(within: tree.Within) -> str:
    size = str(within.before) if within.before == within.after else f"({within.before}, {within.after})"
    return _words("WITHIN", size, within.grace is not None and f"GRACE PERIOD {within.grace}")


def _window(window: tree.Window) -> str:
    match window:
        case tree.TumblingWindow():
            kind, parts = "TUMBLING", [f"SIZE {window.size}"]
        case tree.HoppingWindow():
            kind, parts = "HOPPING", [f"SIZE {window.size}", f"ADVANCE BY {window.advance}"]
        case tree.SessionWindow():
            kind, parts = "SESSION", [str(window.gap)]
    if window.retention is not None:
        parts.append(f"RETENTION {window.retention}")
    if window.grace is not None:
        parts.append(f"GRACE PERIOD {window.grace}")
    return f"{kind} ( {' , '.join(parts)} ) "


def _keys(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(map(render_sql, expressions)) or "()"


# --- statements that define and write ----------------------------------------------------------------------------


def _create_source(statement: tree.CreateSource) -> str:
    text = _words(
        "CREATE",
        statement.or_replace and "OR REPLACE",
        statement.is_read_only and "SOURCE",
        statement.kind.value,
        statement.if_not_exists and "IF NOT EXISTS",
        _name(statement.name),
        _columns(statement.columns),
        _properties(statement.properties),
    )
    return f"{text};"


def _create_as_select(statement: tree.CreateAsSelect) -> str:
    return _words(
        "CREATE",
        statement.or_replace and "OR REPLACE",
        statement.kind.value,
        statement.if_not_exists and "IF NOT EXISTS",
        _name(statement.name),
        _properties(statement.properties),
        "AS",
        _query(statement.query),
    )


def _alter_source(statement: tree.AlterSource) -> str:
    added = ",\n".join(f"ADD COLUMN {_column(column)}" for column in statement.added_columns)
    return f"ALTER {statement.kind.value} {_name(statement.name)}\n{added};"


def _drop_source(statement: tree.DropSource) -> str:
    return _words(
        "DROP",
        statement.kind.value,
        statement.if_exists and "IF EXISTS",
        _name(statement.name),
        statement.delete_topic and "DELETE TOPIC",
    )


def _create_type(statement: tree.CreateType) -> str:
    condition = statement.if_not_exists and "IF NOT EXISTS"
    text = _words("CREATE TYPE", condition, _name(statement.name), "AS", render_type(statement.type))
    return f"{text};"


def _drop_type(statement: tree.DropType) -> str:
    return _words("DROP TYPE", statement.if_exists and "IF EXISTS", _name(statement.name))


def _create_connector(statement: tree.CreateConnector) -> str:
    return _words(
        "CREATE",
        statement.kind.value,
        "CONNECTOR",
        statement.if_not_exists and "IF NOT EXISTS",
        _name(statement.name),
        _properties(statement.properties),
    )


def _drop_connector(statement: tree.DropConnector) -> str:
    return _words("DROP CONNECTOR", statement.if_exists and "IF EXISTS", _name(statement.name))


def _insert_select(statement: tree.InsertSelect) -> str:
    return _words("INSERT INTO", _name(statement.target), _properties(statement.properties), _query(statement.query))


def _insert_values(statement: tree.InsertValues) -> str:
    columns = f"({', '.join(map(_name, statement.columns))})" if statement.columns else ""
    return _words(
        "INSERT INTO", _name(statement.target), columns, f"VALUES ({', '.join(map(render_sql, statement.values))})"
    )


# --- all other statements ----------------------------------------------------------------------------------------


def _control_query(statement: tree.ControlQuery) -> str:
    return f"{statement.action.value} {'ALL' if statement.query_id is None else _name(statement.query_id)}"


def _explain(statement: tree.Explain) -> str:
    subject = _name(statement.query_id or "") if statement.statement is None else render_statement(statement.statement)
    return f"EXPLAIN {subject}"


def _show(statement: tree.Show) -> str:
    kind = statement.connector_kind and statement.connector_kind.value
    return _words("SHOW", kind, statement.show_all and "ALL", statement.listing.value, _extended(statement))


def _describe_source(statement: tree.DescribeSource) -> str:
    # DESCRIBE TABLES lists the tables; a source of that name needs quotes only here.
    name = "`TABLES`" if statement.name == "TABLES" else _name(statement.name)
    return _words("DESCRIBE", name, _extended(statement))


def _describe_sources(statement: tree.DescribeSources) -> str:
    return _words("DESCRIBE", f"{statement.kind.value}S", _extended(statement))


def _print_topic(statement: tree.PrintTopic) -> str:
    return _words(
        "PRINT",
        _exact_name(statement.topic),
        statement.from_beginning and "FROM BEGINNING",
        statement.interval is not None and f"INTERVAL {statement.interval}",
        statement.limit is not None and f"LIMIT {statement.limit}",
    )


def _assert_topic(statement: tree.AssertTopic) -> str:
    return _words(
        "ASSERT",
        not statement.expects_existence and "NOT EXISTS",
        "TOPIC",
        _exact_name(statement.topic),
        _properties(statement.properties),
        statement.timeout is not None and f"TIMEOUT {statement.timeout}",
    )


def _assert_schema(statement: tree.AssertSchema) -> str:
    return _words(
        "ASSERT",
        not statement.expects_existence and "NOT EXISTS",
        "SCHEMA",
        statement.subject is not None and f"SUBJECT {_exact_name(statement.subject)}",
        statement.schema_id is not None and f"ID {statement.schema_id}",
        statement.timeout is not None and f"TIMEOUT {statement.timeout}",
    )


_RULES: Final[dict[type[tree.Statement], Callable[[Any], str]]] = {
    tree.Query: _query,
    tree.CreateSource: _create_source,
    tree.CreateAsSelect: _create_as_select,
    tree.AlterSource: _alter_source,
    tree.DropSource: _drop_source,
    tree.CreateType: _create_type,
    tree.DropType: _drop_type,
    tree.CreateConnector: _create_connector,
    tree.DropConnector: _drop_connector,
    tree.InsertSelect: _insert_select,
    tree.InsertValues: _insert_values,
    tree.ControlQuery: _control_query,
    tree.Explain: _explain,
    tree.Show: _show,
    tree.DescribeSource: _describe_source,
    tree.DescribeSources: _describe_sources,
    tree.DescribeFunction: lambda statement: f"DESCRIBE FUNCTION {_name(statement.name)}",
    tree.DescribeConnector: lambda statement: f"DESCRIBE CONNECTOR {_name(statement.name)}",
    tree.PrintTopic: _print_topic,
    tree.SetProperty: lambda statement: f"SET {text_literal(statement.name)}={text_literal(statement.value)}",
    tree.UnsetProperty: lambda statement: f"UNSET {text_literal(statement.name)}",
    tree.AlterSystem: lambda statement: f"ALTER SYSTEM {text_literal(statement.name)}={text_literal(statement.value)}",
    tree.DefineVariable: lambda statement: f"DEFINE {statement.name}={text_literal(statement.value)}",
    tree.UndefineVariable: lambda statement: f"UNDEFINE {statement.name}",
    tree.AssertTopic: _assert_topic,
    tree.AssertSchema: _assert_schema,
}
