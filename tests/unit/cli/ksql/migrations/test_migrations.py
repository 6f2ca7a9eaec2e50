"""Migrations: files in order, each once, failures recorded and retried, changed files noticed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.ksql.migrations import command
from moldau.cli.ksql.migrations.applying import current_version, pending, problems
from moldau.cli.ksql.migrations.metadata import COLUMNS, Event
from moldau.cli.ksql.migrations.project import Project, create_project
from moldau.cli.tool import ToolError
from moldau.pipeline.ksql.syntax import statements as syntax
from moldau.pipeline.ksql.syntax.parser import parse


class FakeServer:
    """Remembers statements; INSERT VALUES become rows."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, dict[str, str]]] = []
        self.sources: set[str] = set()
        self.written: list[list[Any]] = []
        self.fails_on = "nothing"

    def info(self) -> Mapping[str, Any]:
        return {"ksqlServiceId": "default_"}

    def run(self, statements: str, properties: Mapping[str, str] | None = None) -> list[Any]:
        if self.fails_on in statements and not statements.startswith("INSERT"):
            raise ToolError(f"cannot run it's {self.fails_on}")
        if statements.startswith("SHOW"):
            return [{"streams": [{"name": name} for name in self.sources]}]
        for statement in parse(statements):
            if isinstance(statement, syntax.InsertValues) and statement.target == "MIGRATION_EVENTS":
                assert statement.columns == COLUMNS
                self.written.append([getattr(one, "value", None) for one in statement.values])
                continue
            self.statements.append((statement.text, dict(properties or {})))
            if isinstance(statement, (syntax.CreateSource, syntax.CreateAsSelect)):
                self.sources.add(statement.name)
            elif isinstance(statement, syntax.DropSource):
                self.sources.discard(statement.name)
        return []

    def rows(self, query: str) -> list[list[Any]]:
        assert isinstance(parse(query)[0], syntax.Query)
        return self.written


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    made = FakeServer()
    monkeypatch.setattr(command, "KsqlServer", lambda project: made)
    return made


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(create_project(str(tmp_path / "p"), "http://localhost:1"))


def migrate(config: str, *words: str) -> int:
    return command.main(["-c", config, *words])


def write(config: str, version: int, text: str) -> None:
    Project.load(config).create(f"step {version}", version).write_text(text)


def test_a_project_is_applied_step_by_step(server: FakeServer, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate(config, "initialize-metadata") == 0
    assert server.sources == {"MIGRATION_EVENTS", "MIGRATION_SCHEMA_VERSIONS"}
    server.statements.clear()
    assert migrate(config, "create", "add", "orders!") == 0
    path = Path(config).parent / "migrations" / "V000001__add_orders.sql"
    path.write_text("SET 'auto.offset.reset'='earliest';\nCREATE TYPE ${t} AS STRUCT<a INT>;")
    write(config, 2, "DROP TYPE a; SHOW TYPES;")

    assert migrate(config, "apply", "--next", "-d", "t=a") == 0
    assert server.statements == [("CREATE TYPE a AS STRUCT<a INT>;", {"auto.offset.reset": "earliest"})]
    assert migrate(config, "apply", "-a") == 0
    assert [text for text, _ in server.statements[1:]] == ["DROP TYPE a;", "SHOW TYPES;"]
    assert migrate(config, "apply", "-a") == 0
    assert migrate(config, "validate") == 0
    capsys.readouterr()
    assert migrate(config, "info") == 0
    shown = capsys.readouterr().out
    assert "Current migration version: 2\n" in shown
    assert " 1       | add orders | MIGRATED | <none>           | " in shown
    assert migrate(config, "destroy-metadata") == 0
    assert not server.sources


def test_a_failure_is_recorded_and_tried_again(
    server: FakeServer, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    migrate(config, "initialize-metadata")
    write(config, 1, "DROP TYPE bad;")
    server.fails_on = "bad"

    assert migrate(config, "apply", "--all") == 1
    assert "version 1 (step 1) failed: cannot run it's bad" in capsys.readouterr().err
    assert migrate(config, "info") == 0
    assert "| ERROR | <none>" in capsys.readouterr().out
    server.fails_on = "nothing"
    assert migrate(config, "apply", "--all") == 0


def test_a_changed_file_stops_further_migrations(
    server: FakeServer, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    migrate(config, "initialize-metadata")
    write(config, 1, "SHOW TYPES;")
    migrate(config, "apply", "-u", "1")
    next((Path(config).parent / "migrations").glob("V000001*")).write_text("SHOW STREAMS;")

    assert migrate(config, "apply", "-a") == 1
    assert migrate(config, "validate") == 1
    assert "version 1 (step 1) has changed since it was applied" in capsys.readouterr().err


def test_a_dry_run_changes_nothing(server: FakeServer, config: str) -> None:
    migrate(config, "initialize-metadata")
    write(config, 1, "SHOW TYPES;")

    assert migrate(config, "apply", "-a", "--dry-run") == 0
    assert server.written == []


@pytest.mark.parametrize("text", ["SELECT * FROM a;", "PRINT a;", "NONSENSE;"])
def test_a_migration_that_cannot_run_is_refused_before_it_begins(server: FakeServer, config: str, text: str) -> None:
    migrate(config, "initialize-metadata")
    write(config, 1, text)

    assert migrate(config, "apply", "-a") == 1
    assert server.written == []


def test_without_metadata_the_way_out_is_told(
    server: FakeServer, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrate(config, "info") == 1
    assert "run `ksql-migrations initialize-metadata` first" in capsys.readouterr().err


def test_files_have_versions_of_their_own(server: FakeServer, config: str) -> None:
    project = Project.load(config)
    project.create("a", None)
    project.create("b", 7)

    assert sorted(project.files()) == [1, 7]
    assert project.create("c", None).name == "V000008__c.sql"
    for version in (7, 0, 1_000_000):
        with pytest.raises(ToolError):
            project.create("d", version)
    (project.folder / "other.sql").write_text("")
    with pytest.raises(ToolError, match=r"other\.sql is not named as a migration"):
        project.files()


def event(key: str, version: str, state: str, previous: str = "<none>") -> Event:
    return Event(key, version, "n", state, "sum", "1", "2", previous, "")


def test_the_current_version_is_the_last_that_succeeded() -> None:
    assert current_version({}) is None
    assert current_version({"CURRENT": event("CURRENT", "3", "MIGRATED")}) == 3
    assert current_version({"CURRENT": event("CURRENT", "3", "ERROR", "2")}) == 2
    with pytest.raises(ToolError, match="is being applied"):
        current_version({"CURRENT": event("CURRENT", "3", "RUNNING")})


def test_a_removed_file_is_a_problem() -> None:
    assert problems({}, {"1": event("1", "1", "MIGRATED")}) == ["version 1 (n) was applied, and its file is not there"]
    assert pending({}, None) == []
