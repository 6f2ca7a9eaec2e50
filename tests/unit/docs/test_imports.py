"""Who imports whom is what the tables in pyproject.toml allow."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["moldau"]
IMPORTS: Mapping[str, Sequence[str]] = SETTINGS["imports"]
LIBRARIES: Mapping[str, Sequence[str]] = SETTINGS["libraries"]


def folder_of(module: str) -> str | None:
    """The row of the table that a module belongs to; None for what belongs to no folder, such as `moldau` itself."""
    return next((row for row in IMPORTS if f"{module}.".startswith(f"moldau.{row}.")), None)


def is_allowed(importer: str, imported: str) -> bool:
    row = IMPORTS[importer]
    return (
        importer == imported
        or any(imported == folder or imported.startswith(f"{folder}.") for folder in row)
        or ("*" in row and imported not in ("testing", "cli"))
    )


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("moldau", include_external_packages=True, cache_dir=None)


def test_every_folder_has_a_row() -> None:
    packages = {path.parent.relative_to(ROOT / "src/moldau") for path in (ROOT / "src/moldau").rglob("*.py")}
    names = {".".join(package.parts) for package in packages if package.parts} - {"pipeline"}
    assert [name for name in sorted(names) if folder_of(f"moldau.{name}") is None] == []
    assert {name for row in IMPORTS.values() for name in row} <= {*IMPORTS, "*", "pipeline"}


def test_folders_import_what_their_row_lists(graph: grimp.ImportGraph) -> None:
    broken = [
        f"{importer} imports {imported}"
        for importer in sorted(graph.modules)
        if (row := folder_of(importer)) is not None
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if (other := folder_of(imported)) is not None and not is_allowed(row, other)
    ]
    assert broken == [], "see [tool.moldau.imports] in pyproject.toml"


def test_libraries_are_imported_where_they_belong(graph: grimp.ImportGraph) -> None:
    broken = [
        f"{importer} imports {library}"
        for library, folders in LIBRARIES.items()
        if library in graph.modules
        for importer in sorted(graph.find_modules_that_directly_import(library))
        if folder_of(importer) not in folders
    ]
    assert broken == [], "see [tool.moldau.libraries] in pyproject.toml"
