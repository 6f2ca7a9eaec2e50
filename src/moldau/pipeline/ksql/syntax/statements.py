"""Statements as they were written: what the parser gives for each statement of the language.

Start at `Statement`. Every statement has its own text and the place where it starts; both are left out of comparison,
so that two spellings of one statement are equal. Names are folded already (upper case unless quoted); types may hold
`NamedType` until the catalogue resolves it. Queries are in `Query` and the classes before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from moldau.formats.types import SqlType
from moldau.pipeline.ksql.syntax.expressions import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    Location,
    LongLiteral,
    NullLiteral,
    StringLiteral,
)

Literal: TypeAlias = (
    NullLiteral | BooleanLiteral | IntegerLiteral | LongLiteral | DoubleLiteral | DecimalLiteral | StringLiteral
)
"""A value that is written out: all that WITH accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Base of all statements."""

    text: str = field(default="", compare=False, repr=False)
    """The statement as it was written, from its first word to its `;`."""
    location: Location | None = field(default=None, compare=False, repr=False)
    """Where the statement starts in the text that was parsed."""


# --- parts that several statements share -----------------------------------------------------------------------


class SourceKind(Enum):
    """Whether a source is a stream of events or a table of latest values."""

    STREAM = "STREAM"
    TABLE = "TABLE"


class ColumnConstraint(Enum):
    """What follows the type of a declared column."""

    NONE = ""
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`name type [KEY | PRIMARY KEY | HEADERS | HEADER('k')]`."""

    name: str
    type: SqlType
    constraint: ColumnConstraint = ColumnConstraint.NONE
    header_key: str | None = None
    """The header that is read; only with `ColumnConstraint.HEADER`."""
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Property:
    """`name = literal` of a WITH clause; an unquoted name is upper case, a quoted one is as written."""

    name: str
    value: Literal
    location: Location | None = field(default=None, compare=False, repr=False)


class TimeUnit(Enum):
    """The units of durations; the value is the unit's milliseconds."""

    MILLISECONDS = 1
    SECONDS = 1_000
    MINUTES = 60_000
    HOURS = 3_600_000
    DAYS = 86_400_000


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of units of time."""

    amount: int
    unit: TimeUnit

    @property
    def ms(self) -> int:
        """The duration in milliseconds."""
        return self.amount * self.unit.value

    def __str__(self) -> str:
        return f"{self.amount} {self.unit.name}"


# --- queries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectExpression:
    """`expression [[AS] alias]`."""

    expression: Expression
    alias: str | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectAll:
    """`*`, or `source.*` where the source is given."""

    source: str | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectStructAll:
    """`struct->*`."""

    base: Expression
    location: Location | None = field(default=None, compare=False, repr=False)


SelectItem: TypeAlias = SelectExpression | SelectAll | SelectStructAll


@dataclass(frozen=True, slots=True)
class SourceReference:
    """`name [[AS] alias]`; without an alias the name is the alias."""

    name: str
    alias: str
    location: Location | None = field(default=None, compare=False, repr=False)


class JoinKind(Enum):
    """Which rows without a match a join keeps."""

    INNER = "INNER"
    LEFT = "LEFT OUTER"
    RIGHT = "RIGHT OUTER"
    FULL = "FULL OUTER"


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN d` (then before and after are equal) or `WITHIN (before, after)`, and the grace period if given."""

    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """`JOIN source [WITHIN …] ON condition`; joins apply from left to right."""

    kind: JoinKind
    source: SourceReference
    condition: Expression
    within: Within | None = None
    location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TumblingWindow:
    """Windows of one size, one after the other."""

    size: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class HoppingWindow:
    """Windows of one size that start every `advance`."""

    size: Duration
    advance: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Windows that end after `gap` without a record."""

    gap: Duration
    retention: Duration | None = None
    grace: Duration | None = None


Window: TypeAlias = TumblingWindow | HoppingWindow | SessionWindow


class Emit(Enum):
    """When a query that runs for ever emits."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """`SELECT … FROM …`, alone or inside a statement that makes it persistent.

    Inside such a statement `emit` is never None: there, CHANGES is the default. Alone, None means a pull query.
    """

    select: tuple[SelectItem, ...]
    source: SourceReference
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None

    @property
    def is_pull(self) -> bool:
        """Whether the query is answered once, from what there is now."""
        return self.emit is None

    @property
    def sources(self) -> tuple[SourceReference, ...]:
        """All sources, from left to right."""
        return (self.source, *(join.source for join in self.joins))


# --- statements that define --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """`CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name [(columns)] [WITH (…)]`."""

    kind: SourceKind
    name: str
    columns: tuple[ColumnDefinition, ...] = ()
    properties: tuple[Property, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_read_only: bool = False
    """Whether SOURCE is written."""


@dataclass(frozen=True, slots=True)
class CreateAsSelect(Statement):
    """`CREATE [OR REPLACE] STREAM|TABLE [IF NOT EXISTS] name [WITH (…)] AS SELECT …`."""

    kind: SourceKind
    name: str
    query: Query
    properties: tuple[Property, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    """`ALTER STREAM|TABLE name ADD [COLUMN] c type [, …]`."""

    kind: SourceKind
    name: str
    added_columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class DropSource(Statement):
    """`DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]`."""

    kind: SourceKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    """`CREATE TYPE [IF NOT EXISTS] name AS type`."""

    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropType(Statement):
    """`DROP TYPE [IF EXISTS] name`."""

    name: str
    if_exists: bool = False


class ConnectorKind(Enum):
    """The direction of a connector."""

    SOURCE = "SOURCE"
    SINK = "SINK"


@dataclass(frozen=True, slots=True)
class CreateConnector(Statement):
    """`CREATE SOURCE|SINK CONNECTOR [IF NOT EXISTS] name WITH (…)`."""

    kind: ConnectorKind
    name: str
    properties: tuple[Property, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector(Statement):
    """`DROP CONNECTOR [IF EXISTS] name`."""

    name: str
    if_exists: bool = False


# --- statements that write ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InsertSelect(Statement):
    """`INSERT INTO target [WITH (…)] SELECT …`."""

    target: str
    query: Query
    properties: tuple[Property, ...] = ()
    target_location: Location | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    """`INSERT INTO target [(columns)] VALUES (…)`."""

    target: str
    columns: tuple[str, ...]
    """The columns that are named; empty if none is."""
    values: tuple[Expression, ...]
    target_location: Location | None = field(default=None, compare=False, repr=False)


# --- statements about queries ------------------------------------------------------------------------------------


class QueryAction(Enum):
    """What is done with a persistent query."""

    TERMINATE = "TERMINATE"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


@dataclass(frozen=True, slots=True)
class ControlQuery(Statement):
    """`TERMINATE|PAUSE|RESUME id|ALL`."""

    action: QueryAction
    query_id: str | None
    """None means ALL."""


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """`EXPLAIN queryId` or `EXPLAIN statement`: exactly one of the two is given."""

    query_id: str | None = None
    statement: Statement | None = None


# --- statements that show ----------------------------------------------------------------------------------------


class Listing(Enum):
    """What `SHOW` (or `LIST`) lists."""

    TOPICS = "TOPICS"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    QUERIES = "QUERIES"
    FUNCTIONS = "FUNCTIONS"
    PROPERTIES = "PROPERTIES"
    TYPES = "TYPES"
    VARIABLES = "VARIABLES"
    CONNECTORS = "CONNECTORS"
    CONNECTOR_PLUGINS = "CONNECTOR PLUGINS"


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """`SHOW|LIST [ALL] what [EXTENDED]`; ALL only for topics, EXTENDED for topics, streams, tables and queries."""

    listing: Listing
    is_extended: bool = False
    show_all: bool = False
    connector_kind: ConnectorKind | None = None
    """Only connectors of that direction; None means both."""


@dataclass(frozen=True, slots=True)
class DescribeSource(Statement):
    """`DESCRIBE name [EXTENDED]`."""

    name: str
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeSources(Statement):
    """`DESCRIBE STREAMS|TABLES [EXTENDED]`."""

    kind: SourceKind
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeFunction(Statement):
    """`DESCRIBE FUNCTION name`."""

    name: str


@dataclass(frozen=True, slots=True)
class DescribeConnector(Statement):
    """`DESCRIBE CONNECTOR name`."""

    name: str


@dataclass(frozen=True, slots=True)
class PrintTopic(Statement):
    """`PRINT topic [FROM BEGINNING] [INTERVAL|SAMPLE n] [LIMIT n]`."""

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


# --- statements of the session -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetProperty(Statement):
    """`SET 'name' = 'value'`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetProperty(Statement):
    """`UNSET 'name'`."""

    name: str


@dataclass(frozen=True, slots=True)
class AlterSystem(Statement):
    """`ALTER SYSTEM 'name' = 'value'`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DefineVariable(Statement):
    """`DEFINE name = 'value'`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UndefineVariable(Statement):
    """`UNDEFINE name`."""

    name: str


# --- statements that check ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AssertTopic(Statement):
    """`ASSERT [NOT EXISTS] TOPIC name [WITH (…)] [TIMEOUT d]`."""

    topic: str
    properties: tuple[Property, ...] = ()
    timeout: Duration | None = None
    expects_existence: bool = True


@dataclass(frozen=True, slots=True)
class AssertSchema(Statement):
    """`ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT d]`; at least one of subject and id is given."""

    subject: str | None = None
    schema_id: int | None = None
    timeout: Duration | None = None
    expects_existence: bool = True
