"""What a server knows: the sum of all commands, in the order of the command topic. Pure.

Every server with the same service id applies the same commands in the same order and so knows the same. A command that
does not fit what is known (two servers accepted the same name at the same time) changes nothing, and says so in its
status. Start at `ServerState.apply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.core.errors import MoldauError
from moldau.ksql.api.documents import Document, command_status
from moldau.ksql.settings import plain_property_name
from moldau.ksql.statements.commands import Command, CommandId
from moldau.ksql.statements.facts import Facts, RecordedFacts
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue
from moldau.pipeline.ksql.catalogue.services import Schemas, Topics
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine, Outcome, PersistentQuery
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.parser import parse

__all__ = ["AppliedCommand", "HostedQuery", "ServerState", "command_id"]


@dataclass(frozen=True, slots=True)
class AppliedCommand:
    """A command, and what has to be known to apply it again without most of the commands before it."""

    command: Command
    query_number: int
    """The number of the next query at that time, which its id contains."""
    is_first: bool = True
    """Whether its source did not exist: one of the same name that is found then had been dropped by that time."""

    def document(self) -> dict[str, Any]:
        return {
            "id": str(self.command.id),
            "command": self.command.document(),
            "queryNumber": self.query_number,
            "isFirst": self.is_first,
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> AppliedCommand:
        command = Command.of_document(CommandId.parse(document["id"]), document["command"])
        return cls(command, document["queryNumber"], document["isFirst"])


@dataclass(slots=True)
class HostedQuery:
    """A persistent query as the server runs it."""

    query: PersistentQuery
    history: tuple[AppliedCommand, ...]
    """The commands that it depends on, and at the end its own: its definition, from which an engine builds it."""
    properties: Mapping[str, Any]
    start_offsets: Mapping[str, Mapping[str, int]]
    is_paused: bool = False

    @property
    def query_id(self) -> str:
        return self.query.query_id


@dataclass(slots=True)
class Lineages:
    """For every source the commands that made it what it is, in their order, those of the sources it is made of too.

    So a query is planned again from the few commands that it depends on, however many there are.
    """

    _number: int = 0
    _sources: dict[str, dict[int, AppliedCommand]] = field(default_factory=dict)
    _for_all: dict[int, AppliedCommand] = field(default_factory=dict)
    """Commands about types and settings, which any statement may depend on."""

    def note_for_all(self, applied: AppliedCommand) -> None:
        """A command that all later ones depend on."""
        self._number += 1
        self._for_all[self._number] = applied

    def note(
        self, applied: AppliedCommand, statement: syntax.Statement, name: str | None, outcome: Outcome
    ) -> tuple[AppliedCommand, ...]:
        """Take a command into account; the commands that it depends on, and itself at the end."""
        if isinstance(statement, syntax.CreateType | syntax.DropType):
            self.note_for_all(applied)
            return ()
        if name is None or isinstance(statement, syntax.DropSource):
            self._sources.pop(name or "", None)
            return ()
        self._number += 1
        read = () if outcome.started is None else outcome.started.sources
        needed: dict[int, AppliedCommand] = dict(self._for_all)
        for source in (*read, name):
            needed |= self._sources.get(source, {})
        needed[self._number] = applied
        if not isinstance(statement, syntax.InsertSelect):
            self._sources[name] = needed
        return tuple(needed[number] for number in sorted(needed))


@dataclass(slots=True)
class ServerState:
    """Changes by `apply` only."""

    settings: Mapping[str, object]
    """The server's own settings that statements depend on."""
    catalogue: Catalogue = field(default_factory=Catalogue)
    plans: dict[str, PersistentQuery] = field(default_factory=dict)
    queries: dict[str, HostedQuery] = field(default_factory=dict)
    statuses: dict[str, Document] = field(default_factory=dict)
    lineages: Lineages = field(default_factory=Lineages)
    """Which commands sources depend on, for the histories of queries."""
    is_terminated: bool = False
    functions: FunctionRegistry = BUILTIN
    """What statements can call."""
    query_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all queries that no session overrides: the server's own, and those of ALTER SYSTEM."""

    def with_defaults(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """A session's properties, and the defaults of those it does not set."""
        return {**self.query_defaults, **properties}

    def apply(self, command: Command) -> Outcome | None:
        """Take a command into account; None if it does not fit, which its status then says."""
        try:
            [statement] = parse(command.statement, allow_missing_semicolon=True)
            outcome = self._apply(command, statement)
        except MoldauError as error:
            self.statuses[str(command.id)] = command_status("ERROR", str(error))
            return None
        query_id = None if outcome.started is None else outcome.started.query_id
        self.statuses[str(command.id)] = command_status("SUCCESS", outcome.message, query_id)
        return outcome

    def apply_again(self, applied: AppliedCommand) -> None:
        """Take a command of a query's history into account; raises `KsqlError` if it does not fit any more."""
        [statement] = parse(applied.command.statement, allow_missing_semicolon=True)
        self.catalogue.query_count = applied.query_number
        name = _source_name(statement)
        if applied.is_first and name in self.catalogue.sources:
            self.catalogue = self.catalogue.copy()
            del self.catalogue.sources[name]
        self._apply(applied.command, statement)

    def _apply(self, command: Command, statement: syntax.Statement) -> Outcome:
        if isinstance(statement, syntax.ControlQuery):
            return self._control(statement)
        if isinstance(statement, syntax.AlterSystem):
            return self._alter_system(statement, command)
        engine = self.engine(command.facts)
        name = _source_name(statement)
        is_first = name not in self.catalogue.sources
        applied = AppliedCommand(command, self.catalogue.query_count, is_first)
        outcome = engine.execute(statement, command.properties)
        self.catalogue, self.plans = engine.catalogue, engine.queries
        history = self.lineages.note(applied, statement, name, outcome)
        for query_id in outcome.stopped:
            self.queries.pop(query_id, None)
        if outcome.started is not None:
            started = outcome.started
            self.queries[started.query_id] = HostedQuery(
                started, history, self.with_defaults(command.properties), command.start_offsets
            )
        return outcome

    def engine(self, facts: Facts) -> Engine:
        """The rules, over what is known now and these facts."""
        recorded = RecordedFacts(facts)
        return self.engine_over(recorded, recorded)

    def engine_over(self, topics: Topics, schemas: Schemas) -> Engine:
        """The rules over what is known now, and these topics and schemas; what it changes is its own."""
        return Engine(
            topics, schemas, dict(self.settings), self.catalogue.copy(), dict(self.plans), functions=self.functions
        )

    def _alter_system(self, statement: syntax.AlterSystem, command: Command) -> Outcome:
        name = plain_property_name(statement.name)
        if name in self.settings:
            self.settings = {**self.settings, name: statement.value}
        self.query_defaults = {**self.query_defaults, name: statement.value}
        self.lineages.note_for_all(AppliedCommand(command, self.catalogue.query_count))
        return Outcome(f"System property {statement.name} was set to {statement.value}.")

    def _control(self, statement: syntax.ControlQuery) -> Outcome:
        ids = list(self.queries) if statement.query_id is None else [statement.query_id]
        for query_id in ids:
            if query_id not in self.queries:
                raise KsqlError(f"Unknown queryId: {query_id}")
        match statement.action:
            case syntax.QueryAction.TERMINATE:
                for query_id in ids:
                    del self.queries[query_id]
                    self.plans.pop(query_id, None)
                    self.catalogue.queries.pop(query_id, None)
                return Outcome("Query terminated.", stopped=tuple(ids))
            case syntax.QueryAction.PAUSE:
                for query_id in ids:
                    self.queries[query_id].is_paused = True
                return Outcome("Query paused.")
            case syntax.QueryAction.RESUME:
                for query_id in ids:
                    self.queries[query_id].is_paused = False
                return Outcome("Query resumed.")


def _source_name(statement: syntax.Statement) -> str | None:
    """The source that a statement makes, changes or writes to."""
    match statement:
        case syntax.InsertSelect(target=name):
            return name
        case syntax.CreateSource() | syntax.CreateAsSelect() | syntax.AlterSource() | syntax.DropSource():
            return statement.name
        case _:
            return None


def command_id(statement: syntax.Statement) -> CommandId:
    """The id under which a statement's command is known."""
    match statement:
        case syntax.CreateSource(kind=kind, name=name) | syntax.CreateAsSelect(kind=kind, name=name):
            return CommandId.of_source(kind.value.lower(), name, "create")
        case syntax.AlterSource(kind=kind, name=name):
            return CommandId.of_source(kind.value.lower(), name, "alter")
        case syntax.DropSource(kind=kind, name=name):
            return CommandId.of_source(kind.value.lower(), name, "drop")
        case syntax.InsertSelect(target=target):
            return CommandId.of_source("stream", target, "create")
        case syntax.CreateType(name=name):
            return CommandId("type", name, "create")
        case syntax.DropType(name=name):
            return CommandId("type", name, "drop")
        case syntax.AlterSystem(name=name):
            return CommandId("cluster", name, "alter")
        case syntax.ControlQuery(action=action, query_id=query_id):
            return CommandId(action.value.lower(), query_id or "ALL", "execute")
        case _:
            raise KsqlError(f"{type(statement).__name__} is not a command")
