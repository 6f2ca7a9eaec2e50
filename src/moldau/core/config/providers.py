"""Config providers: `${env:NAME}`, `${file:path:key}`, `${dir:path:file}` in a settings file.

Only providers named in `config.providers` are used, so that a `$` in a password has no special meaning by itself. The
names are free; a provider's class decides its kind, and Kafka's classes are recognised by their simple name. Start at
`substitute_variables`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from moldau.core.errors import InvalidConfigError
from moldau.core.properties import parse_properties

__all__ = ["substitute_variables"]

_VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")

Lookup = Callable[[str, str, Mapping[str, str]], str]
"""`(path, key, environ)`: the value, or `LookupError` or `OSError`."""


def substitute_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Replace the variables of the configured providers; raises `InvalidConfigError` for one without a value."""
    providers = _providers(settings)
    if not providers:
        return dict(settings)
    return {name: _filled_in(name, text, providers, environ) for name, text in settings.items()}


def _providers(settings: Mapping[str, str]) -> dict[str, Lookup]:
    names = [name.strip() for name in settings.get("config.providers", "").split(",") if name.strip()]
    providers = {}
    for name in names:
        key = f"config.providers.{name}.class"
        class_name = settings.get(key, name).strip().rpartition(".")[2]
        if class_name not in _KINDS:
            raise InvalidConfigError(f"{key}={class_name} is not a provider known here; use env, file or dir")
        providers[name] = _KINDS[class_name]
    return providers


def _filled_in(name: str, text: str, providers: Mapping[str, Lookup], environ: Mapping[str, str]) -> str:
    def replace(found: re.Match[str]) -> str:
        provider, path, key = found[1], found[3] or "", found[4]
        if provider not in providers:
            return found[0]
        try:
            return providers[provider](path, key, environ)
        except (LookupError, OSError) as error:
            raise InvalidConfigError(f"{name}: {found[0]} has no value ({error})") from None

    return _VARIABLE.sub(replace, text)


def _from_environment(path: str, key: str, environ: Mapping[str, str]) -> str:
    return environ[key]


def _from_file(path: str, key: str, environ: Mapping[str, str]) -> str:
    return parse_properties(Path(path).read_text("utf-8"))[key]


def _from_directory(path: str, key: str, environ: Mapping[str, str]) -> str:
    if "/" in key or key in ("", ".", ".."):
        raise LookupError(f"{key!r} is not the name of a file")
    return (Path(path) / key).read_text("utf-8")


_KINDS: dict[str, Lookup] = {
    "env": _from_environment,
    "EnvVarConfigProvider": _from_environment,
    "file": _from_file,
    "FileConfigProvider": _from_file,
    "dir": _from_directory,
    "DirectoryConfigProvider": _from_directory,
}
