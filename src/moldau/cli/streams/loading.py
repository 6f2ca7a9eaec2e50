"""A topology named on the command line: `package.module:name` or `path/to/file.py:name`. Start at `load_topology`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from moldau.cli.tool import ToolError
from moldau.core.errors import MoldauError
from moldau.pipeline.ir.topology import Topology

__all__ = ["load_topology"]


def load_topology(target: str, config: Mapping[str, Any] | None = None) -> Topology:
    """Import the module and take what it names: a topology, a builder, or a function that returns either.

    A builder is built with `config`, which may ask for optimizations.
    Raises `ToolError` where there is no such thing, and passes on what the topology itself finds wrong.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise ToolError(f"{target!r} names no topology; write module:function or path/to/file.py:function")
    module = _loaded(place)
    if not hasattr(module, name):
        offered = [one for one, what in vars(module).items() if callable(what) and not one.startswith("_")]
        raise ToolError(f"{place} has no {name!r}; it has {', '.join(offered[:10]) or 'nothing to call'}")
    return _topology(getattr(module, name), target, config)


def _loaded(place: str) -> ModuleType:
    path = Path(place)
    is_file = path.suffix == ".py"
    if is_file and not path.exists():
        raise ToolError(f"there is no file {place}")
    # Workers import the module by its name, and find it the way we do.
    folder = str(path.absolute().parent if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    name = path.stem if is_file else place
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0] or error.name == name:
            raise ToolError(f"there is no module {name!r} here; give a file as path/to/file.py:function") from None
        raise ToolError(f"{place} cannot be imported: {error}") from None
    except MoldauError:
        raise
    except Exception as error:
        raise ToolError(f"{place} cannot be imported: {_last_line(error)}") from None


def _topology(found: Any, target: str, config: Mapping[str, Any] | None) -> Topology:
    if callable(found) and not isinstance(found, Topology):
        try:
            found = found()
        except MoldauError:
            raise
        except Exception as error:
            raise ToolError(f"{target} failed: {_last_line(error)}") from None
    if not isinstance(found, Topology) and callable(getattr(found, "build", None)):
        found = found.build(config)
    if not isinstance(found, Topology):
        raise ToolError(f"{target} gives {type(found).__name__}, not a topology; return builder.build()")
    return found


def _last_line(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
