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
from moldau.ksql.commands import Command, CommandId
from moldau.ksql.documents import Document, command_status
from moldau.ksql.facts import Facts, RecordedFacts
from moldau.ksql.settings import plain_property_name
from moldau.pipeline.ksql.catalogue.catalogue import Catalogue
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine, Outcome, PersistentQuery
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.parser import parse

__all__ = ["HostedQuery", "ServerState", "command_id"]


@dataclass(slots=True)
class HostedQuery:
    """A persistent query as the server runs it."""

    query: PersistentQuery
    history: tuple[Command, ...]
    """All commands up to the one that made it: its definition, from which an engine builds it."""
    properties: Mapping[str, Any]
    start_offsets: Mapping[str, Mapping[str, int]]
    is_paused: bool = False

    @property
    def query_id(self) -> str:
        return self.query.query_id


@dataclass(slots=True)
class ServerState:
    """Changes by `apply` only."""

    settings: Mapping[str, object]
    """The server's own settings that statements depend on."""
    catalogue: Catalogue = field(default_factory=Catalogue)
    plans: dict[str, PersistentQuery] = field(default_factory=dict)
    queries: dict[str, HostedQuery] = field(default_factory=dict)
    statuses: dict[str, Document] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    """Commands that define something, for the histories of queries."""
    is_terminated: bool = False
    query_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all queries that no session overrides: the server's own, and those of ALTER SYSTEM."""

    def with_defaults(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """A session's properties, and the defaults of those it does not set."""
        return {**self.query_defaults, **properties}

    def apply(self, command: Command) -> Outcome | None:
        """Take a command into account; None if it does not fit, which its status then says."""
        try:
            outcome = self._apply(command)
        except MoldauError as error:
            self.statuses[str(command.id)] = command_status("ERROR", str(error))
            return None
        query_id = None if outcome.started is None else outcome.started.query_id
        self.statuses[str(command.id)] = command_status("SUCCESS", outcome.message, query_id)
        return outcome

    def _apply(self, command: Command) -> Outcome:
        [statement] = parse(command.statement, allow_missing_semicolon=True)
        if isinstance(statement, syntax.ControlQuery):
            return self._control(statement)
        if isinstance(statement, syntax.AlterSystem):
            return self._alter_system(statement, command)
        engine = self.engine(command.facts)
        outcome = engine.execute(statement, command.properties)
        self.catalogue, self.plans = engine.catalogue, engine.queries
        self.commands.append(command)
        for query_id in outcome.stopped:
            self.queries.pop(query_id, None)
        if outcome.started is not None:
            started = outcome.started
            self.queries[started.query_id] = HostedQuery(
                started, tuple(self.commands), self.with_defaults(command.properties), command.start_offsets
            )
        return outcome

    def engine(self, facts: Facts) -> Engine:
        """The rules, over what is known now and these facts."""
        recorded = RecordedFacts(facts)
        return Engine(recorded, recorded, dict(self.settings), self.catalogue.copy(), dict(self.plans))

    def _alter_system(self, statement: syntax.AlterSystem, command: Command) -> Outcome:
        name = plain_property_name(statement.name)
        if name in self.settings:
            self.settings = {**self.settings, name: statement.value}
        self.query_defaults = {**self.query_defaults, name: statement.value}
        self.commands.append(command)
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
