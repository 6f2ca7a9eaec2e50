"""Runs the statements of one request: all are rehearsed on a copy of what is known, then carried out one by one.

A statement that defines something becomes a command in the command topic; its effects on topics and schemas come
before, so that a query never starts without its topic. A statement that shows something is answered from what is known
when its turn comes. Start at `StatementRunner.run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from moldau.client.errors import ClientError
from moldau.core.errors import MoldauError, ServiceError
from moldau.ksql.api.documents import Document, current_status, entity
from moldau.ksql.api.errors import ErrorKind, RequestError, StatementError
from moldau.ksql.api.requests import StatementRequest, checked_properties, checked_system_property
from moldau.ksql.settings import plain_property_name
from moldau.ksql.statements.commands import Command
from moldau.ksql.statements.facts import Effect, Facts, Rehearsal
from moldau.ksql.statements.latency import check_latency
from moldau.ksql.statements.state import ServerState, command_id
from moldau.pipeline.ksql.catalogue.services import Schemas, Topics
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.execution.insert_values import InsertedRecord
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.parser import check_size, parse
from moldau.pipeline.ksql.syntax.splitting import split_statements
from moldau.pipeline.ksql.syntax.variables import substitute

__all__ = ["Session", "StatementRunner", "parsed_request", "parsed_statements"]

LONG_TEXT = 10_000
"""From so many characters on, statements are parsed in a thread."""
COMMANDS = (
    syntax.CreateSource,
    syntax.CreateAsSelect,
    syntax.InsertSelect,
    syntax.AlterSource,
    syntax.DropSource,
    syntax.CreateType,
    syntax.DropType,
    syntax.ControlQuery,
    syntax.AlterSystem,
)
SESSION_STATEMENTS = (
    syntax.SetProperty,
    syntax.UnsetProperty,
    syntax.DefineVariable,
    syntax.UndefineVariable,
)


@dataclass(slots=True)
class Session:
    """The properties and variables of a request, which its own statements may change."""

    properties: dict[str, Any]
    variables: dict[str, str]

    def change(self, statement: syntax.Statement) -> None:
        """Take SET, UNSET, DEFINE and UNDEFINE into account."""
        match statement:
            case syntax.SetProperty(name=name, value=value):
                self.properties |= checked_properties({name: value})
            case syntax.UnsetProperty(name=name):
                self.properties.pop(plain_property_name(name), None)
            case syntax.DefineVariable(name=name, value=value):
                self.variables[name] = value
            case syntax.UndefineVariable(name=name):
                self.variables.pop(name, None)


@dataclass(slots=True)
class Step:
    """One statement of a request, rehearsed."""

    statement: syntax.Statement
    properties: Mapping[str, Any]
    variables: Mapping[str, str]
    facts: Facts = field(default_factory=Facts)
    effects: Sequence[Effect] = ()
    record: InsertedRecord | None = None
    source_topics: tuple[str, ...] = ()
    """What a new query reads."""
    push_query: str | None = None
    """The push query that the statement ends."""
    warning: str | None = None
    """Why the statement has nothing to do, as with IF NOT EXISTS."""


class RunnerServices(Protocol):
    """What the runner needs of the server."""

    @property
    def state(self) -> ServerState: ...

    @property
    def topics(self) -> Topics: ...

    def new_schemas(self) -> Schemas: ...

    async def append(self, command: Command) -> tuple[int, Document]:
        """Write a command and wait until it is applied; its offset, and its status."""

    def write_record(self, record: InsertedRecord) -> None:
        """Write the record of INSERT VALUES. Blocks."""

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Where topics end now. Blocks."""

    def push_query_id(self, query_id: str) -> str | None: ...

    def close_query(self, query_id: str) -> bool: ...

    async def answer(self, step: Step) -> Document:
        """The answer to a statement that shows something; raises `KsqlError`."""


class StatementRunner:
    def __init__(self, services: RunnerServices) -> None:
        self._services = services
        self._turn = asyncio.Lock()
        """Statements of this server run one after the other, so that each rehearsal sees what is known."""

    async def run(self, request: StatementRequest, *, substitutes: bool = True) -> list[Document]:
        """The answers to all statements; raises `StatementError` for the first that fails."""
        session = Session(dict(request.properties), dict(request.variables))
        steps = await parsed_request(request.text, session, substitutes=substitutes)
        async with self._turn:
            state = self._services.state
            rehearsal = Rehearsal(self._services.topics, self._services.new_schemas())
            engine = state.engine_over(rehearsal, rehearsal)
            await asyncio.to_thread(self._rehearse, steps, engine, rehearsal)
            answers: list[Document] = []
            for step in steps:
                answer = await _with_statement(step.statement, answers, partial(self._carry_out, step))
                if answer is not None:
                    answers.append(answer)
            return answers

    # Rehearsing

    def _rehearse(self, steps: Sequence[Step], engine: Engine, rehearsal: Rehearsal) -> None:
        for step in steps:
            try:
                self._rehearse_one(step, engine, rehearsal)
            except StatementError:
                raise
            except RequestError as error:
                raise StatementError(str(error), step.statement.text, error.kind) from None
            except (MoldauError, ServiceError) as error:
                raise StatementError(str(error), step.statement.text) from None

    def _rehearse_one(self, step: Step, engine: Engine, rehearsal: Rehearsal) -> None:
        statement = step.statement
        if isinstance(statement, syntax.Query | syntax.PrintTopic):
            raise StatementError(
                "The following statement types should be issued to the websocket endpoint '/query':\n\t* PRINT\n\t"
                "* SELECT",
                statement.text,
                ErrorKind.QUERY_ENDPOINT,
            )
        if isinstance(statement, syntax.ControlQuery):
            self._rehearse_control(step, statement, engine)
        elif isinstance(statement, syntax.AlterSystem):
            checked_system_property(statement.name)
        elif isinstance(statement, (*COMMANDS, syntax.InsertValues)):
            known = set(engine.catalogue.sources) | set(engine.catalogue.types)
            outcome = engine.execute(statement, step.properties)
            step.facts, step.effects, step.record = rehearsal.take_facts(), rehearsal.take_effects(), outcome.record
            if outcome.started is not None:
                check_latency(outcome.started.topology, step.properties)
                step.source_topics = outcome.started.source_topics
            if outcome.deleted_topic is not None:
                topic = outcome.deleted_topic
                step.effects = [*step.effects, lambda: self._services.topics.delete(topic)]
            if _did_nothing(statement, known):
                step.warning = outcome.message
        elif isinstance(statement, syntax.Explain) and statement.query_id is not None:
            if statement.query_id not in engine.queries:
                raise KsqlError(
                    f"Query with id:{statement.query_id} does not exist, "
                    "use SHOW QUERIES to view the full set of queries."
                )
        elif isinstance(statement, syntax.DescribeSource) and statement.name not in engine.catalogue.sources:
            raise KsqlError(f"Could not find STREAM/TABLE '{statement.name}' in the Metastore")

    def _rehearse_control(self, step: Step, statement: syntax.ControlQuery, engine: Engine) -> None:
        query_id = statement.query_id
        is_end = statement.action is syntax.QueryAction.TERMINATE
        if query_id is not None and query_id not in engine.queries:
            step.push_query = self._services.push_query_id(query_id) if is_end else None
            if step.push_query is not None:
                return
            raise KsqlError(f"Unknown queryId: {query_id}")
        if is_end:
            for one in list(engine.queries) if query_id is None else [query_id]:
                engine.queries.pop(one)
                engine.catalogue.queries.pop(one, None)

    # Carrying out

    async def _carry_out(self, step: Step) -> Document | None:
        statement = step.statement
        if isinstance(statement, SESSION_STATEMENTS):
            return None
        if isinstance(statement, syntax.InsertValues):
            assert step.record is not None
            await asyncio.to_thread(self._services.write_record, step.record)
            return None
        if step.warning is not None:
            return entity("warning_entity", statement.text, message=step.warning)
        if step.push_query is not None:
            was_terminated = self._services.close_query(step.push_query)
            return entity("terminate_query", statement.text, queryId=step.push_query, wasTerminated=was_terminated)
        if isinstance(statement, COMMANDS):
            return await self._enqueue(step)
        return await self._services.answer(step)

    async def _enqueue(self, step: Step) -> Document:
        for effect in step.effects:
            await asyncio.to_thread(effect)
        starts: Mapping[str, Mapping[str, int]] = {}
        properties = self._services.state.with_defaults(step.properties)
        if step.source_topics and str(properties.get("auto.offset.reset", "latest")).lower() == "latest":
            starts = await asyncio.to_thread(self._services.end_offsets, step.source_topics)
        command = Command(
            id=command_id(step.statement),
            statement=step.statement.text,
            properties=step.properties,
            facts=step.facts,
            start_offsets=starts,
        )
        offset, status = await self._services.append(command)
        if status["status"] == "ERROR":
            raise StatementError(status["message"], step.statement.text)
        return current_status(step.statement.text, command.id, status, offset)


def _did_nothing(statement: syntax.Statement, known: set[str]) -> bool:
    match statement:
        case syntax.CreateSource() | syntax.CreateAsSelect() | syntax.CreateType():
            return statement.if_not_exists and statement.name in known
        case syntax.DropSource() | syntax.DropType():
            return statement.if_exists and statement.name not in known
        case _:
            return False


async def _with_statement(
    statement: syntax.Statement, answers: Sequence[Document], work: Callable[[], Awaitable[Document | None]]
) -> Document | None:
    """The answer; failures are told with the statement, and with the answers to those before it."""
    try:
        return await work()
    except RequestError as error:
        raise StatementError(str(error), statement.text, error.kind, answers) from None
    except ClientError as error:
        raise StatementError(str(error), statement.text, ErrorKind.SERVER_ERROR, answers) from None
    except (MoldauError, ServiceError) as error:
        raise StatementError(str(error), statement.text, ErrorKind.BAD_STATEMENT, answers) from None


async def parsed_request(text: str, session: Session, *, substitutes: bool = True) -> list[Step]:
    """As `parsed_statements`; a long text does not hold up other requests."""
    if len(text) < LONG_TEXT:
        return parsed_statements(text, session, substitutes=substitutes)
    return await asyncio.to_thread(parsed_statements, text, session, substitutes=substitutes)


def parsed_statements(text: str, session: Session, *, substitutes: bool = True) -> list[Step]:
    """The statements of a request, each with the session as its predecessors leave it; raises `StatementError`."""
    try:
        check_size(text)
        if not substitutes or "${" not in text:
            return [_step(statement, session) for statement in parse(text)]
        steps = []
        split = split_statements(text)
        for part in [*split.statements, *([split.rest] if split.rest is not None else [])]:
            # Variables that a statement defines hold for those after it.
            [statement] = parse(substitute(part.text, session.variables))
            steps.append(_step(statement, session))
        return steps
    except KsqlParseError as error:
        raise StatementError(error.message, error.statement or text) from None
    except RecursionError:
        raise StatementError("The statement is nested too deep", text) from None


def _step(statement: syntax.Statement, session: Session) -> Step:
    session.change(statement)
    return Step(statement, dict(session.properties), dict(session.variables))
