"""The folder of a migrations project: its configuration, and its files `V000001__name.sql`. Start at `Project.load`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moldau.cli.tool import ToolError
from moldau.core.properties import parse_properties

__all__ = ["CONFIG_FILE", "MigrationFile", "Project", "create_project"]

CONFIG_FILE = "ksql-migrations.properties"
FOLDER = "migrations"
HIGHEST = 999_999
_NAME = re.compile(r"V(?P<version>\d{6})__(?P<name>.+)\.sql")


@dataclass(frozen=True, slots=True)
class MigrationFile:
    """One migration: its statements and the sum by which a later change is noticed."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.md5(self.text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Project:
    """The configuration of a project."""

    folder: Path
    properties: Mapping[str, str]

    @classmethod
    def load(cls, config_file: str) -> Project:
        path = Path(config_file)
        try:
            properties = parse_properties(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise ToolError(f"{config_file} is not UTF-8") from None
        except OSError as error:
            raise ToolError(
                f"cannot read {config_file}: {error.strerror}; `ksql-migrations new-project` makes a project"
            ) from None
        if not properties.get("ksql.server.url"):
            raise ToolError(f"{config_file} lacks ksql.server.url, the address of the server")
        folder = Path(properties.get("ksql.migrations.dir") or path.parent / FOLDER)
        return cls(folder, properties)

    @property
    def server_url(self) -> str:
        return self.properties["ksql.server.url"]

    @property
    def stream(self) -> str:
        return self.properties.get("ksql.migrations.stream.name", "MIGRATION_EVENTS")

    @property
    def table(self) -> str:
        return self.properties.get("ksql.migrations.table.name", "MIGRATION_SCHEMA_VERSIONS")

    def topic(self, source: str, kind: str, service_id: str) -> str:
        return self.properties.get(f"ksql.migrations.{kind}.topic.name") or f"{service_id}ksql_{source}"

    @property
    def replicas(self) -> int:
        text = self.properties.get("ksql.migrations.topic.replicas", "1")
        if not text.isdecimal():
            raise ToolError(f"ksql.migrations.topic.replicas must be a number, not {text!r}")
        return int(text)

    def files(self) -> dict[int, MigrationFile]:
        """All migrations by version; raises `ToolError` for two with one version."""
        if not self.folder.is_dir():
            raise ToolError(f"there is no folder {self.folder}")
        found: dict[int, MigrationFile] = {}
        for path in sorted(self.folder.glob("*.sql")):
            match = _NAME.fullmatch(path.name)
            if match is None:
                raise ToolError(f"{path.name} is not named as a migration: V000001__name.sql")
            version = int(match["version"])
            if version in found:
                raise ToolError(f"two migrations have version {version}: {found[version].name} and {match['name']}")
            if version == 0:
                raise ToolError(f"{path.name}: versions start at 1")
            found[version] = MigrationFile(version, match["name"].replace("_", " "), _read(path))
        return found

    def create(self, name: str, version: int | None) -> Path:
        """A new file for a migration, with the next version unless one is given."""
        files = self.files()
        chosen = version if version is not None else max(files, default=0) + 1
        if not 1 <= chosen <= HIGHEST:
            raise ToolError(f"the version must lie between 1 and {HIGHEST}, not {chosen}")
        if chosen in files:
            raise ToolError(f"there is a migration with version {chosen} already: {files[chosen].name}")
        words = re.sub(r"\W+", "_", name.strip()).strip("_")
        if not words:
            raise ToolError("a migration needs a description of letters and digits")
        path = self.folder / f"V{chosen:06d}__{words}.sql"
        _write(path, "")
        return path


def create_project(folder: str, server_url: str) -> Path:
    """A folder with a configuration and a place for migrations; raises `ToolError` if it has a configuration."""
    config = Path(folder) / CONFIG_FILE
    if config.exists():
        raise ToolError(f"{config} exists already")
    try:
        (Path(folder) / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"cannot make {folder}: {error.strerror}") from None
    _write(config, f"ksql.server.url={server_url}\n")
    return config


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not UTF-8") from None
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ToolError(f"cannot write {path}: {error.strerror}") from None
