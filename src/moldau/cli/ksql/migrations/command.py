"""The command `ksql-migrations` and its verbs. Start at `main`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from moldau.cli.command_line import CommandParser
from moldau.cli.ksql.migrations.applying import apply, current_version, pending, planned, problems
from moldau.cli.ksql.migrations.metadata import MigrationLog, parsed_rows
from moldau.cli.ksql.migrations.project import CONFIG_FILE, MigrationFile, Project, create_project
from moldau.cli.ksql.rendering.tables import first_line, table
from moldau.cli.ksql.server_client import Credentials, KsqlServerClient, split_elements
from moldau.cli.tool import ToolError, run_body

__all__ = ["main", "parser"]


class KsqlServer:
    """The server of a project."""

    def __init__(self, project: Project) -> None:
        user = project.properties.get("ksql.auth.basic.username")
        credentials = Credentials(user, project.properties.get("ksql.auth.basic.password", "")) if user else None
        self._client = KsqlServerClient(project.server_url, credentials)
        self._sequence_number: int | None = None

    def info(self) -> Mapping[str, Any]:
        return self._client.info()

    def run(self, statements: str, properties: Mapping[str, str] | None = None) -> list[Any]:
        body: dict[str, Any] = {"ksql": statements, "streamsProperties": dict(properties or {})}
        if self._sequence_number is not None:
            body["commandSequenceNumber"] = self._sequence_number
        documents = self._client.run_statements(body)
        for document in documents:
            number = document.get("commandSequenceNumber", -1)
            if isinstance(number, int) and number >= 0:
                self._sequence_number = max(number, self._sequence_number or 0)
            status = document.get("commandStatus") or {}
            if status.get("status") == "ERROR":
                raise ToolError(str(status.get("message")))
        return documents

    def rows(self, query: str) -> list[list[Any]]:
        with self._client.open_query({"ksql": query, "streamsProperties": {}}) as pieces:
            return parsed_rows(split_elements(pieces))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    verbs: dict[str, Callable[[argparse.Namespace], int]] = {
        "new": _new,
        "new-project": _new,
        "initialize-metadata": _initialize,
        "create": _create,
        "apply": _apply,
        "info": _info,
        "validate": _validate,
        "destroy-metadata": _destroy,
    }
    return run_body(lambda: verbs[options.verb](options))


def _new(options: argparse.Namespace) -> int:
    config = create_project(options.path, options.server)
    print(f"Migrations project directory created successfully\nConfiguration: {config}")
    return 0


def _create(options: argparse.Namespace) -> int:
    print(
        f"Migration file created: {Project.load(options.config_file).create(' '.join(options.words), options.version)}"
    )
    return 0


def _initialize(options: argparse.Namespace) -> int:
    _, _, log = _opened(options)
    log.create()
    print("Migrations metadata initialized successfully")
    return 0


def _destroy(options: argparse.Namespace) -> int:
    _, _, log = _opened(options)
    log.destroy()
    print("Migrations metadata cleaned successfully")
    return 0


def _apply(options: argparse.Namespace) -> int:
    project, server, log = _opened(options)
    files, events = project.files(), log.events()
    wrong = problems(files, events)
    if wrong:
        raise ToolError("; ".join(wrong))
    current = current_version(events)
    chosen = _chosen(options, pending(files, current))
    variables = dict(_definition(one) for one in options.define)
    if not chosen:
        print("No eligible migrations found")
    for migration in chosen:
        if options.dry_run:
            planned(migration, variables)
            print(f"This is a dry run. Version {migration.version} ({migration.name}) would run:\n{migration.text}")
            continue
        apply(migration, current, server, log, variables=variables, show=print)
        current = migration.version
    return 0


def _chosen(options: argparse.Namespace, waiting: list[MigrationFile]) -> list[MigrationFile]:
    if options.next:
        return waiting[:1]
    if options.until is not None:
        if options.until not in {one.version for one in waiting}:
            raise ToolError(f"version {options.until} is not a pending migration; `ksql-migrations info` lists them")
        return [one for one in waiting if one.version <= options.until]
    if options.version is not None:
        found = [one for one in waiting if one.version == options.version]
        if not found:
            raise ToolError(f"version {options.version} is not a pending migration; `ksql-migrations info` lists them")
        return found
    return waiting


def _info(options: argparse.Namespace) -> int:
    project, _, log = _opened(options)
    files, events = project.files(), log.events()
    current = events.get("CURRENT")
    print(f"Current migration version: {'None' if current is None else current.version}")
    rows = []
    for version in sorted({*files, *(int(key) for key in events if key != "CURRENT")}):
        event = events.get(str(version))
        name = event.name if event is not None else files[version].name
        if event is None:
            rows.append([version, name, "PENDING", "N/A", "N/A", "N/A", "N/A"])
        else:
            error = first_line(event.error_reason) or "N/A"
            times = (_time(event.started_on), _time(event.completed_on))
            rows.append([version, name, event.state, event.previous, *times, error])
    columns = ["Version", "Name", "State", "Previous Version", "Started On", "Completed On", "Error Reason"]
    print("\n".join(table(columns, rows)))
    return 0


def _validate(options: argparse.Namespace) -> int:
    project, _, log = _opened(options)
    wrong = problems(project.files(), log.events())
    if wrong:
        raise ToolError("; ".join(wrong))
    print("Successfully validated checksums for migrations that have already been applied")
    return 0


def _opened(options: argparse.Namespace) -> tuple[Project, KsqlServer, MigrationLog]:
    project = Project.load(options.config_file)
    server = KsqlServer(project)
    return project, server, MigrationLog(project, server)


def _time(text: str) -> str:
    if not text.isdecimal():
        return "N/A"
    return f"{datetime.fromtimestamp(int(text) / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ToolError(f"-d needs name=value, not {text!r}")
    return name.strip(), value.strip().strip("'")


def parser() -> CommandParser:
    made = CommandParser(
        prog="ksql-migrations",
        description="Apply numbered files of ksql statements to a server, each once.",
        epilog="example:\n"
        "  ksql-migrations new-project shop http://localhost:8088\n"
        "  ksql-migrations -c shop/ksql-migrations.properties initialize-metadata\n"
        "  ksql-migrations -c shop/ksql-migrations.properties create add orders\n"
        "  ksql-migrations -c shop/ksql-migrations.properties apply --all\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("new-project", "new"):
        new = made.add_verb(name, help="make a folder for a project")
        new.add_argument("path", help="the folder")
        new.add_argument("server", help="the server's address")
    helps = {
        "initialize-metadata": "make the stream and table in which the server remembers migrations",
        "create": "make an empty file for a migration",
        "apply": "apply migrations",
        "info": "show the migrations and their states",
        "validate": "check that applied files have not changed",
        "destroy-metadata": "remove what the server remembers",
    }
    verbs = {name: made.add_verb(name, help=text) for name, text in helps.items()}
    for verb in verbs.values():
        verb.add_argument("-c", "--config-file", default=CONFIG_FILE, metavar="FILE", help=f"default: {CONFIG_FILE}")
    verbs["create"].add_argument("words", nargs="+", metavar="description", help="what the migration does")
    verbs["create"].add_argument("-v", "--version", type=int, help="its number; the next one unless given")
    which = verbs["apply"].add_mutually_exclusive_group(required=True)
    which.add_argument("-n", "--next", action="store_true", help="the next one")
    which.add_argument("-a", "--all", action="store_true", help="all that wait")
    which.add_argument("-u", "--until", type=int, metavar="N", help="all up to a version")
    which.add_argument("-v", "--version", type=int, metavar="N", help="one version")
    verbs["apply"].add_argument("--dry-run", action="store_true", help="show what would run")
    verbs["apply"].add_argument("-d", "--define", action="append", default=[], metavar="NAME=VALUE", help="a variable")
    return made


if __name__ == "__main__":
    sys.exit(main())
