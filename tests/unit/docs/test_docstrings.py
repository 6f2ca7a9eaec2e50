"""What docstrings point at is there: "Start at `name`", and modules named as `log.manager` or `log/manager.py`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.core.config import BROKER_KEYS

SOURCE = Path(__file__).resolve().parents[3] / "src/moldau"
FOLDERS = {path.name for path in SOURCE.iterdir() if path.is_dir()}
SETTINGS = {*BROKER_KEYS, "security.protocol", "ksql.connect.url", "connect.type", "connect.index"}
"""Names with dots that are no modules."""
FILES = sorted(SOURCE.rglob("*.py"))


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""


def names_defined_in(nodes: list[ast.stmt]) -> dict[str, ast.stmt]:
    """What a module or a class defines or imports at its top, also under `if TYPE_CHECKING`."""
    found: dict[str, ast.stmt] = {}
    for node in nodes:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = node
            case ast.Assign(targets=targets):
                found |= {target.id: node for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {name.asname or name.name: node for name in names}
            case ast.If(body=body):
                found |= names_defined_in(body)
    return found


def has_name(path: Path, dotted: list[str]) -> bool:
    """Whether a module has the name; what is set in `__init__` of a class is taken on trust."""
    if not dotted:
        return True
    names = names_defined_in(ast.parse(path.read_text()).body)
    if dotted[0] not in names:
        return False
    owner = names[dotted[0]]
    if len(dotted) == 1 or not isinstance(owner, ast.ClassDef) or owner.bases:
        return True
    return dotted[1] in names_defined_in(owner.body) or f"self.{dotted[1]}" in ast.unparse(owner)


def module_exists(dotted: str) -> bool:
    """Whether `log.manager`, or `log.manager.LogManager.open`, leads to something in src/moldau."""
    parts = dotted.removeprefix("moldau.").split(".")
    for length in range(len(parts), 0, -1):
        place = SOURCE.joinpath(*parts[:length])
        if place.with_suffix(".py").exists():
            return has_name(place.with_suffix(".py"), parts[length:])
        if place.is_dir():
            return has_name(place / "__init__.py", parts[length:]) if (place / "__init__.py").exists() else False
    return False


def beside(path: Path, dotted: str) -> str:
    return ".".join([*path.relative_to(SOURCE).parent.parts, dotted])


def stale_pointers(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    pointers = re.findall(r"Start at\s+((?:`[A-Za-z_][\w.]*`[\s,and]*)+)", ast.get_docstring(tree) or "")
    for start in re.findall(r"`([\w.]+)`", " ".join(pointers)):
        if not has_name(path, start.split(".")) and not module_exists(beside(path, start)) and not module_exists(start):
            yield f"Start at `{start}`"
    for text in docstrings(tree):
        for dotted in re.findall(r"`(?:moldau\.)?([a-z_]+(?:\.\w+)+)`", text):
            is_name = dotted.split(".")[0] in FOLDERS and dotted not in SETTINGS
            if is_name and not module_exists(dotted) and not module_exists(beside(path, dotted)):
                yield f"`{dotted}`"
        for file in re.findall(r"`([a-z_]+/[\w/]+\.py)`", text):
            if file.split("/")[0] in FOLDERS and not (SOURCE / file).exists():
                yield f"`{file}`"


def test_docstrings_point_at_what_is_there() -> None:
    stale = [f"{path.relative_to(SOURCE)}: {pointer}" for path in FILES for pointer in stale_pointers(path)]
    assert stale == []


@pytest.mark.parametrize(
    ("dotted", "exists"),
    [
        ("log.manager", True),
        ("log.manager.LogManager.open", True),
        ("log.manger", False),
        ("log.manager.LogMan", False),
    ],
)
def test_a_pointer_is_followed_to_its_end(dotted: str, exists: bool) -> None:
    assert module_exists(dotted) is exists
