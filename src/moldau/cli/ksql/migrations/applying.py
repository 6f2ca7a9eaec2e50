"""Which migrations are to be applied, and how one is. Start at `pending` and `apply`; `problems` validates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moldau.cli.ksql.migrations.metadata import (
    CURRENT,
    ERROR,
    MIGRATED,
    NONE,
    RUNNING,
    Event,
    MigrationLog,
    Server,
    now_ms,
)
from moldau.cli.ksql.migrations.project import MigrationFile
from moldau.cli.ksql.shell.steps import LocalStep, QueryStep, RequestStep, Step, plan_steps
from moldau.cli.tool import ToolError
from moldau.core.errors import MoldauError
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["apply", "current_version", "pending", "planned", "problems"]


def current_version(events: Mapping[str, Event]) -> int | None:
    """The last version that was migrated; a failed one after it does not count. Raises `ToolError` while one runs."""
    current = events.get(CURRENT)
    if current is not None and current.state == RUNNING:
        raise ToolError(
            f"version {current.version} is being applied, or applying it was interrupted; check on the server which "
            "of its statements ran. To start over, use destroy-metadata, then initialize-metadata"
        )
    text = NONE if current is None else current.version if current.state == MIGRATED else current.previous
    return None if text in (NONE, "") else int(text)


def problems(files: Mapping[int, MigrationFile], events: Mapping[str, Event]) -> list[str]:
    """What is wrong with files that have been applied: removed, or changed since."""
    found = []
    for event in events.values():
        if event.version_key == CURRENT or event.state != MIGRATED:
            continue
        file = files.get(int(event.version))
        if file is None:
            found.append(f"version {event.version} ({event.name}) was applied, and its file is not there")
        elif file.checksum != event.checksum:
            found.append(f"version {event.version} ({event.name}) has changed since it was applied")
    return found


def pending(files: Mapping[int, MigrationFile], current: int | None) -> list[MigrationFile]:
    """The migrations behind the current version, in order."""
    return [files[version] for version in sorted(files) if version > (current or 0)]


def planned(migration: MigrationFile, variables: Mapping[str, str]) -> list[Step]:
    """The steps of a migration; raises `ToolError` for what a migration cannot do."""
    try:
        steps = plan_steps(migration.text, variables)
    except MoldauError as error:
        raise ToolError(f"version {migration.version} ({migration.name}) cannot be read: {error}") from None
    for step in steps:
        if isinstance(step, QueryStep):
            raise ToolError(
                f"version {migration.version} ({migration.name}): SELECT and PRINT cannot be in a migration"
            )
    return steps


def apply(
    migration: MigrationFile,
    current: int | None,
    server: Server,
    log: MigrationLog,
    *,
    variables: Mapping[str, str],
    show: Callable[[str], None],
) -> None:
    """Apply one migration and record it; one that fails is recorded as failed and raised."""
    steps = planned(migration, variables)
    started_on, previous = now_ms(), NONE if current is None else str(current)
    show(f"Applying migration version {migration.version}: {migration.name}")
    log.record(migration, RUNNING, previous, started_on)
    properties: dict[str, str] = {}
    try:
        for step in steps:
            if isinstance(step, RequestStep):
                server.run(step.text, properties)
            elif isinstance(step, LocalStep):
                _change(properties, step.statement)
    except MoldauError as error:
        log.record(migration, ERROR, previous, started_on, str(error))
        raise ToolError(f"version {migration.version} ({migration.name}) failed: {error}") from None
    log.record(migration, MIGRATED, previous, started_on)
    show("Successfully migrated")


def _change(properties: dict[str, str], statement: syntax.Statement) -> None:
    """SET and UNSET last for one migration; variables have been put in already."""
    if isinstance(statement, syntax.SetProperty):
        properties[statement.name] = statement.value
    elif isinstance(statement, syntax.UnsetProperty):
        properties.pop(statement.name, None)
