"""A session with a ksql server: its properties and variables, and what is done with statements and commands.

Start at `Session.run`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import moldau
from moldau.cli.ksql.rendering.rows import RowTable, column_names
from moldau.cli.ksql.rendering.statements import render_json, render_statement
from moldau.cli.ksql.server_client import KsqlServerClient, RefusedError, split_elements
from moldau.cli.ksql.shell.commands import Command, help_lines
from moldau.cli.ksql.shell.steps import LocalStep, QueryStep, RequestStep, plan_steps
from moldau.cli.ksql.shell.terminal import Terminal
from moldau.cli.tool import ToolError
from moldau.core.errors import MoldauError
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["OUTPUTS", "Session", "SessionSettings"]

OUTPUTS = ("TABULAR", "JSON")
SUBSTITUTION = "ksql.variable.substitution.enable"
STATUS = "Press CTRL-C to interrupt"
UNSET_HINT = " Use the UNSET command to revert your change."


@dataclass(slots=True, kw_only=True)
class SessionSettings:
    """What a session begins with, and what its commands change."""

    output: str = "TABULAR"
    row_limit: int | None = None
    timeout_s: float | None = None
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    is_pipelining: bool = False
    is_wrapped: bool = True
    column_width: int = 0


class Session:
    """One user with one server at a time."""

    def __init__(
        self,
        connect: Callable[[str], KsqlServerClient],
        url: str,
        terminal: Terminal,
        settings: SessionSettings,
        history: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._connect = connect
        self.client = connect(url)
        self._terminal = terminal
        self._settings = settings
        self._history = history
        self._sequence_number: int | None = None
        self._knows_unset = False
        self.names_are_stale = True
        """Whether statements may have made or removed sources since completion last asked for their names."""

    def run(self, given: str | Command) -> bool:
        """Do what one input says; False if it failed, which has been told."""
        try:
            if isinstance(given, Command):
                self._run_command(given)
            else:
                self._run_statements(given)
        except RefusedError as error:
            self._show_refusal(error)
            return False
        except (MoldauError, KsqlError) as error:
            self._terminal.show_error(str(error))
            return False
        return True

    # Statements

    def _run_statements(self, text: str) -> None:
        is_substituting = self._settings.properties.get(SUBSTITUTION, "true").lower() != "false"
        for step in plan_steps(text, self._settings.variables if is_substituting else None):
            match step:
                case LocalStep(statement=statement):
                    self._run_local(statement)
                case RequestStep(text=statements):
                    self._show_answers(self._send(statements))
                case QueryStep():
                    self._run_query(step)

    def _send(self, statements: str, variables: Mapping[str, str] | None = None) -> list[Any]:
        body: dict[str, Any] = {"ksql": statements, "streamsProperties": self._settings.properties}
        if variables is not None:
            body["sessionVariables"] = variables
        if not self._settings.is_pipelining and self._sequence_number is not None:
            body["commandSequenceNumber"] = self._sequence_number
        self.names_are_stale = True
        return self.client.run_statements(body)

    def _show_answers(self, documents: Sequence[Any]) -> None:
        for document in documents:
            number = document.get("commandSequenceNumber", -1)
            if isinstance(number, int) and number >= 0:
                self._sequence_number = max(number, self._sequence_number or 0)
        if self._settings.output == "JSON":
            if documents:
                self._terminal.show(render_json(documents))
            return
        for document in documents:
            lines = render_statement(document)
            if len(documents) > 1 and document.get("statementText"):
                lines = [document["statementText"], *lines]
            self._terminal.show(["", *lines])
        failed = [one for one in documents if one.get("commandStatus", {}).get("status") == "ERROR"]
        if failed and not self._terminal.is_interactive:
            raise ToolError("The server could not carry out a statement, see above")

    def _show_refusal(self, error: RefusedError) -> None:
        entities = error.document.get("entities")
        if entities:
            self._show_answers(entities)
        if self._settings.output == "JSON" and error.document:
            self._terminal.show(render_json(error.document))
        else:
            self._terminal.show_error(str(error))

    # Queries

    def _run_query(self, step: QueryStep) -> None:
        body = {"ksql": step.text, "streamsProperties": self._settings.properties}
        ending = "Topic printing ceased" if step.is_print else "Query terminated"
        try:
            with self.client.open_query(body, timeout_s=self._settings.timeout_s) as pieces:
                if step.is_print:
                    self._show_text(pieces)
                else:
                    self._show_rows(split_elements(pieces), is_pull=step.is_pull)
        except KeyboardInterrupt:
            if not self._terminal.is_interactive:
                raise
        self._terminal.show([ending] if self._settings.output == "TABULAR" or step.is_print else [])

    def _show_rows(self, elements: Iterator[bytes], *, is_pull: bool) -> None:
        layout: RowTable | None = None
        shown = 0
        is_json = self._settings.output == "JSON"
        for element in elements:
            # Numbers stay as they are written: a DECIMAL must not become a float.
            document = json.loads(element, parse_float=str, parse_int=str)
            if "errorMessage" in document:
                raise RefusedError(str(document["errorMessage"].get("message", "")), 400, {})
            if is_json:
                self._terminal.show([element.decode()])
            elif "header" in document:
                layout = self._layout(document["header"])
                self._terminal.show(layout.header())
            elif "row" in document and layout is not None:
                self._terminal.show(layout.row(document["row"]))
            elif "finalMessage" in document:
                self._terminal.show([str(document["finalMessage"])])
            shown += "row" in document
            if shown == self._settings.row_limit:
                return
            if not is_pull:
                self._terminal.show_status(STATUS)

    def _layout(self, header: Mapping[str, Any]) -> RowTable:
        settings = self._settings
        return RowTable.fitting(
            column_names(str(header.get("schema", ""))),
            self._terminal.width,
            cell_width=settings.column_width,
            is_wrapped=settings.is_wrapped,
        )

    def _show_text(self, pieces: Iterator[bytes]) -> None:
        pending, shown = b"", 0
        self._terminal.show_status(STATUS)
        for piece in pieces:
            *lines, pending = (pending + piece).split(b"\n")
            for line in filter(bytes.strip, lines):
                self._terminal.show([line.decode(errors="replace").rstrip("\r")])
                shown += line.startswith(b"rowtime:")
                if shown == self._settings.row_limit:
                    return
            self._terminal.show_status(STATUS)

    # Statements about the session

    def _run_local(self, statement: syntax.Statement) -> None:
        variables = self._settings.variables
        match statement:
            case syntax.SetProperty(name=name, value=value):
                self._set_property(name, value)
            case syntax.UnsetProperty(name=name):
                self._unset_property(name)
            case syntax.DefineVariable(name=name, value=value):
                variables[name.upper()] = value
            case syntax.UndefineVariable(name=name):
                if variables.pop(name.upper(), None) is None:
                    self._terminal.show([f"Cannot undefine variable '{name}' which was never defined."])
            case _:
                listed = [{"name": name, "value": value} for name, value in sorted(variables.items())]
                document = {"@type": "variables", "statementText": statement.text, "variables": listed, "warnings": []}
                self._show_answers([document])

    def _set_property(self, name: str, value: str) -> None:
        self.client.check_property(name)
        before = self._settings.properties.get(name)
        self._settings.properties[name] = value
        change = f" from '{before}'" if before is not None else ""
        hint = "" if self._knows_unset else UNSET_HINT
        self._knows_unset = True
        self._terminal.show([f"Successfully changed local property '{name}'{change} to '{value}'.{hint}"])

    def _unset_property(self, name: str) -> None:
        value = self._settings.properties.pop(name, None)
        if value is None:
            raise ToolError(f"Cannot unset local property '{name}' which was never set")
        self._terminal.show([f"Successfully unset local property '{name}' (value was '{value}')."])

    # Commands

    def _run_command(self, command: Command) -> None:
        show = self._terminal.show
        match command.name:
            case "HELP":
                show(["", *help_lines()])
            case "CLEAR":
                self._terminal.clear()
            case "VERSION":
                show([f"Version: {moldau.__version__}"])
            case "HISTORY":
                show(f"{number:>4}: {line}" for number, line in enumerate(self._history(), 1))
            case "OUTPUT":
                self._set_output(command.argument)
            case "RUN SCRIPT":
                self._show_answers(self._send(_read_script(command.argument), self._settings.variables))
            case "SPOOL":
                self._set_spool(command.argument)
            case "SERVER":
                self._set_server(command.argument)
            case "REQUEST-PIPELINING":
                self._set_pipelining(command.argument)
            case "SET CLI WRAP":
                self._settings.is_wrapped = _switch(command)
                show([f"Wrap set to {'ON' if self._settings.is_wrapped else 'OFF'}"])
            case "SET CLI COLUMN-WIDTH":
                if not command.argument.isdecimal() or len(command.argument) > 6:
                    raise ToolError("SET CLI COLUMN-WIDTH needs a number of characters; 0 fits the terminal")
                self._settings.column_width = int(command.argument)
                show([f"Column width set to {command.argument}"])

    def _set_output(self, argument: str) -> None:
        output = argument.upper()
        if not output:
            self._terminal.show([f"Current output format: {self._settings.output}"])
            return
        if output not in OUTPUTS:
            raise ToolError(f"Invalid output format: '{argument}' (valid formats: {', '.join(OUTPUTS)})")
        self._settings.output = output
        self._terminal.show([f"Output format set to {output}"])

    def _set_spool(self, argument: str) -> None:
        if argument.upper() == "OFF":
            if not self._terminal.is_spooling:
                raise ToolError("Cannot turn off spooling, as it is not on: SPOOL 'file' starts it")
            self._terminal.stop_spool()
            self._terminal.show(["Spooling is off"])
        elif not argument:
            raise ToolError("SPOOL needs a file in quotes, or OFF")
        else:
            self._terminal.start_spool(argument)
            self._terminal.show(
                [f"Session will be spooled to {Path(argument).absolute()}", "Enter SPOOL OFF to disable"]
            )

    def _set_server(self, url: str) -> None:
        if not url:
            self._terminal.show([self.client.url])
            return
        client = self._connect(url)
        client.info()
        self.client, self._sequence_number, self.names_are_stale = client, None, True
        self._terminal.show([f"Server now: {client.url}"])

    def _set_pipelining(self, argument: str) -> None:
        if not argument:
            self._terminal.show([f"Current request-pipelining configuration: {_on(self._settings.is_pipelining)}"])
            return
        self._settings.is_pipelining = _switch(Command("REQUEST-PIPELINING", argument))
        self._terminal.show([f"request-pipelining configuration: {_on(self._settings.is_pipelining)}"])


def _on(is_on: bool) -> str:
    return "ON" if is_on else "OFF"


def _switch(command: Command) -> bool:
    if command.argument.upper() not in ("ON", "OFF"):
        raise ToolError(f"{command.name} is ON or OFF, not '{command.argument}'")
    return command.argument.upper() == "ON"


def _read_script(path: str) -> str:
    if not path:
        raise ToolError("RUN SCRIPT needs a file in quotes")
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"Cannot read script {path}: it is not UTF-8") from None
    except OSError as error:
        raise ToolError(f"Cannot read script {path}: {error.strerror}") from None
