"""Finding plug-ins: built in, by entry point, on the plug-in path, or by the name of a Python class.

A name may be a Java class name of a well-known plug-in (`org.apache.kafka.connect.file.FileStreamSourceConnector`),
its simple name, the simple name without `Connector` (`FileStreamSource`), or a Python
class (`my_package.my_module.MyConnector` or `my_package.my_module:MyConnector`). Entry points are those of the group
`moldau.connectors`. A folder of the plug-in path is imported from: each Python file or package in it may define
plug-ins. Start at `Plugins`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from moldau.connect.api.builtin import BUILTIN
from moldau.connect.api.connector import Connector, SinkConnector, SourceConnector
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.plugin_kinds import Converter, HeaderConverter, Predicate, Transformation

__all__ = ["ENTRY_POINT_GROUP", "KINDS", "Plugin", "PluginNotFoundError", "Plugins"]

ENTRY_POINT_GROUP: Final = "moldau.connectors"
KINDS: Final[dict[str, type]] = {
    "source": SourceConnector,
    "sink": SinkConnector,
    "transformation": Transformation,
    "predicate": Predicate,
    "converter": Converter,
    "header_converter": HeaderConverter,
}
CONNECTOR_KINDS: Final = ("source", "sink")

log = logging.getLogger(__name__)


class PluginNotFoundError(ConnectError):
    """No plug-in has the name."""


@dataclass(slots=True)
class Plugin:
    """A plug-in that can be loaded."""

    name: str
    """As lists show it."""

    kind: str
    load: Callable[[], type[Any]]
    """Imports and returns its class; raises `ConnectError` if a library is missing."""

    aliases: tuple[str, ...] = ()

    def as_json(self) -> dict[str, str]:
        """As `/connector-plugins` lists it."""
        return {"class": self.name, "type": self.kind, "version": str(self.load().version)}


class Plugins:
    """All plug-ins that a worker knows."""

    def __init__(self, plugin_path: Iterable[str] = ()) -> None:
        self._plugins: list[Plugin] = [Plugin(one.name, one.kind, _loader(one.target), one.aliases) for one in BUILTIN]
        self._plugins += _entry_point_plugins()
        for folder in plugin_path:
            if folder.strip():
                self._plugins += _path_plugins(Path(folder.strip()))
        self._names: dict[tuple[str, str], Plugin] = {}
        for plugin in self._plugins:
            for name in _names(plugin):
                self._names.setdefault((plugin.kind, name), plugin)

    def connectors(self) -> list[Plugin]:
        """Sources and sinks."""
        return [one for one in self._plugins if one.kind in CONNECTOR_KINDS]

    def all(self) -> list[Plugin]:
        """Every plug-in."""
        return list(self._plugins)

    def find(self, name: str, *kinds: str) -> Plugin:
        """The plug-in of that name among those kinds (all by default); raises `PluginNotFoundError`."""
        wanted = name.strip()
        for kind in kinds or KINDS:
            found = self._names.get((kind, wanted))
            if found is not None:
                return found
        found = _python_class(wanted, kinds or tuple(KINDS))
        if found is not None:
            return found
        raise PluginNotFoundError(self._unknown(wanted, kinds))

    def connector(self, name: str) -> Connector:
        """A new connector; raises `PluginNotFoundError`."""
        made: Connector = self.find(name, *CONNECTOR_KINDS).load()()
        return made

    def create(self, name: str, kind: str) -> Any:
        """A new object of a plug-in's class; raises `PluginNotFoundError`."""
        return self.find(name, kind).load()()

    def _unknown(self, name: str, kinds: tuple[str, ...]) -> str:
        what = "connector" if kinds == CONNECTOR_KINDS else " or ".join(kinds or ("plug-in",)).replace("_", " ")
        known = sorted({_simple(one.name) for one in self._plugins if not kinds or one.kind in kinds})
        return (
            f"Failed to find any class that implements {what} and which name matches {name}; available are: "
            f"{', '.join(known)}. Own classes are found by entry point ({ENTRY_POINT_GROUP}), on plugin.path, or by "
            "their Python name"
        )


def _simple(name: str) -> str:
    return name.rpartition(".")[2].rpartition(":")[2]


def _names(plugin: Plugin) -> list[str]:
    names = []
    for full in (plugin.name, *plugin.aliases):
        simple = _simple(full)
        names += [full, simple]
        if plugin.kind in CONNECTOR_KINDS:
            names += [simple.removesuffix("Connector")]
        elif plugin.kind.endswith("converter"):
            names += [simple.removesuffix("Converter")]
    return names


def _loader(target: str) -> Callable[[], type[Any]]:
    module_name, _, class_name = target.partition(":")

    def load() -> type[Any]:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise ConnectError(
                f"{class_name} needs the Python package {error.name}, which is not installed; install it and restart "
                "the worker"
            ) from error
        found: type[Any] = getattr(module, class_name)
        return found

    return load


def plugin_name(cls: type[Any]) -> str:
    """The name of a plug-in's class in lists."""
    own = cls.__dict__.get("plugin_name", "")
    return own or f"{cls.__module__}.{cls.__qualname__}"


def _kinds_of(cls: object) -> list[str]:
    if not isinstance(cls, type) or inspect.isabstract(cls):
        return []
    return [kind for kind, base in KINDS.items() if issubclass(cls, base) and cls is not base]


def _plugin_of(cls: type[Any], kind: str, aliases: tuple[str, ...] = ()) -> Plugin:
    python_name = f"{cls.__module__}.{cls.__qualname__}"
    return Plugin(plugin_name(cls), kind, lambda: cls, (*aliases, python_name))


def _entry_point_plugins() -> list[Plugin]:
    found = []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            cls = entry.load()
        except Exception as error:  # A broken package must not keep the worker from starting.
            log.warning("plug-in %s (%s) cannot be loaded and is ignored: %s", entry.name, entry.value, error)
            continue
        found += [_plugin_of(cls, kind, (entry.name,)) for kind in _kinds_of(cls)]
    return found


def _path_plugins(folder: Path) -> list[Plugin]:
    if not folder.is_dir():
        log.warning("plugin.path: %s is not a folder and is ignored", folder)
        return []
    found: list[Plugin] = []
    for path in sorted(folder.iterdir()):
        module = _module_at(path)
        for cls in vars(module).values() if module is not None else ():
            if getattr(cls, "__module__", "").split(".")[0] == path.stem:
                found += [_plugin_of(cls, kind) for kind in _kinds_of(cls)]
    return found


def _module_at(path: Path) -> ModuleType | None:
    source = path / "__init__.py" if path.is_dir() else path
    if source.suffix != ".py" or not source.is_file() or not path.stem.isidentifier():
        return None
    # Executors import a plug-in's class by its name, so that the folder has to be on their path, too.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        return importlib.import_module(path.stem)
    except Exception as error:  # A broken file must not keep the worker from starting.
        log.warning("plugin.path: %s cannot be imported and is ignored: %s", path, error)
        return None


def _python_class(name: str, kinds: tuple[str, ...]) -> Plugin | None:
    module_name, separator, class_name = name.rpartition(":" if ":" in name else ".")
    if not separator or not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        return None
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            return None
        raise ConnectError(f"{name} cannot be imported: {error}") from error
    cls = getattr(module, class_name, None)
    kind = next((one for one in _kinds_of(cls) if one in kinds), None)
    return None if kind is None or cls is None else _plugin_of(cls, kind)
