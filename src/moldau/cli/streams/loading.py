"""Loads the topology of a command line: `package.module:name` or `path/to/file.py:name`. Start at `load_topology`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import moldau
from moldau.cli.tool import ToolError
from moldau.core.errors import MoldauError
from moldau.pipeline.dsl.builder import StreamsBuilder
from moldau.pipeline.ir.topology import Topology

__all__ = ["load_topology"]

NOT_USERS = (Path(moldau.__file__).parent, Path(importlib.__file__).parent)


def load_topology(target: str, config: Mapping[str, Any] | None = None) -> Topology:
    """Import the module and return the topology: `name` is a topology, a builder, or a function that returns either.

    A builder is built with `config`, which may enable optimizations.
    Raises `ToolError` if the name does not exist, and passes on errors of the topology itself.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        example = f"{target}:topology" if target.endswith(".py") else "module:function or path/to/file.py:function"
        raise ToolError(f"{target!r} names no topology; write {example}")
    module = _load_module(place)
    if not hasattr(module, name):
        raise ToolError(f"{place} has no {name!r}; {_offer(module, name)}")
    return _topology(getattr(module, name), target, config)


def _offer(module: ModuleType, wanted: str) -> str:
    """A hint with a similar name, or up to ten names, that the module itself defines (not imports)."""
    own = [
        name
        for name, what in vars(module).items()
        if not name.startswith("_")
        and (isinstance(what, Topology | StreamsBuilder) or getattr(what, "__module__", "") == module.__name__)
    ]
    if meant := get_close_matches(wanted, own, 1):
        return f"did you mean {meant[0]!r}?"
    return f"it has {', '.join(own[:10]) or 'no function and no topology'}"


def _load_module(place: str) -> ModuleType:
    path = Path(place)
    is_file = path.suffix == ".py"
    if is_file and not path.exists():
        raise ToolError(f"there is no file {place}")
    # Workers import the module by name too, so they need the same path.
    folder = str(path.absolute().parent if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    name = path.stem if is_file else place
    if is_file and name in sys.modules and not _is_of(sys.modules[name], path):
        raise ToolError(f"{place} has the name of a module that is in use, {name!r}; call the file something else")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0] or error.name == name:
            raise ToolError(f"there is no module {name!r} here; give a file as path/to/file.py:function") from None
        raise ToolError(f"{place} cannot be imported: {_describe_error(error)}") from None
    except MoldauError:
        raise
    except Exception as error:
        raise ToolError(f"{place} cannot be imported: {_describe_error(error)}") from None


def _is_of(module: ModuleType, path: Path) -> bool:
    return Path(getattr(module, "__file__", None) or "").absolute() == path.absolute()


def _topology(found: Any, target: str, config: Mapping[str, Any] | None) -> Topology:
    if callable(found) and not isinstance(found, Topology):
        try:
            found = found()
        except MoldauError:
            raise
        except Exception as error:
            raise ToolError(f"{target} failed: {_describe_error(error)}") from None
    if not isinstance(found, Topology) and callable(getattr(found, "build", None)):
        found = found.build(config)
    if not isinstance(found, Topology):
        raise ToolError(f"{target} gives {type(found).__name__}, not a topology; return builder.build()")
    return found


def _describe_error(error: Exception) -> str:
    """The exception, and the last line of the user's program in its traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _is_users(file: str) -> bool:
    return not file.startswith("<frozen ") and not any(map(Path(file).is_relative_to, NOT_USERS))
