"""`/config` and `/mode`: global settings, and those of a context or a subject. Start at `Config`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import flag
from moldau.registry.decisions.settings import delete_config, delete_mode, update_config, update_mode
from moldau.registry.errors import ConfigNotSetError, ModeNotSetError
from moldau.registry.requests import read_config_update, read_mode_update
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import Description, Handler, serves
from moldau.registry.routes.documents import config_document, config_update_document
from moldau.registry.routes.resource import Resource
from moldau.registry.scopes import effective_config, effective_mode

__all__ = ["Config", "Mode"]

DEFAULT_TO_GLOBAL = flag("defaultToGlobal", "Whether the inherited value is given where nothing is set.")
FORCE = flag("force", "Whether IMPORT is set although there are schemas.")
RECURSIVE = flag("recursive", "Whether modes of all subjects within go too.")


def _serves_both(
    method: str, path: str, summary: str, **description: Unpack[Description]
) -> Callable[[Handler], Handler]:
    """Decorator that declares a path for the global settings and one for a subject; fills in `{}` in the summary."""
    of_everything = serves(method, path, summary.format("of everything"), **description)
    of_a_subject = serves(method, f"{path}/{{subject}}", summary.format("of a subject"), **description)
    return lambda handler: of_everything(of_a_subject(handler))


class Config(Resource):
    tag = "Config"

    @_serves_both("GET", "/config", "The config {}.", parameters=(DEFAULT_TO_GLOBAL,), reply=documents.CONFIG)
    async def get_config(self, call: Call) -> Answer:
        scope = self.scope(call)
        if "subject" not in call.parts or call.flag("defaultToGlobal"):
            return Answer(config_document(effective_config(self.state, scope, self.defaults)))
        own = self.state.configs.get(scope)
        if own is None:
            raise ConfigNotSetError(scope or "")
        return Answer(config_document(own))

    @_serves_both(
        "PUT",
        "/config",
        "Change the config {}.",
        body=documents.CONFIG_UPDATE,
        reply=documents.CONFIG_UPDATE,
        refuses=(415, 422, 429, 500),
        by_leader=True,
    )
    async def put_config(self, call: Call) -> Answer:
        changes, scope = read_config_update(await call.document()), self.scope(call)
        config = await self.registry.change(lambda state: update_config(state, scope, changes))
        return Answer(config_update_document(config))

    @_serves_both(
        "DELETE",
        "/config",
        "Forget the config {}; the one above holds then.",
        reply=documents.CONFIG,
        refuses=(422, 429, 500),
        by_leader=True,
    )
    async def delete_config(self, call: Call) -> Answer:
        scope, defaults = self.scope(call), self.defaults
        config = await self.registry.change(lambda state: delete_config(state, scope, defaults=defaults))
        return Answer(config_document(config))


class Mode(Resource):
    tag = "Mode"

    @_serves_both("GET", "/mode", "The mode {}.", parameters=(DEFAULT_TO_GLOBAL,), reply=documents.MODE)
    async def get_mode(self, call: Call) -> Answer:
        scope = self.scope(call)
        if "subject" not in call.parts or call.flag("defaultToGlobal"):
            return Answer({"mode": effective_mode(self.state, scope)})
        if scope not in self.state.modes:
            raise ModeNotSetError(scope or "")
        return Answer({"mode": self.state.modes[scope]})

    @_serves_both(
        "PUT",
        "/mode",
        "Change the mode {}.",
        parameters=(FORCE,),
        body=documents.MODE,
        reply=documents.MODE,
        refuses=(415, 422, 429, 500),
        by_leader=True,
    )
    async def put_mode(self, call: Call) -> Answer:
        mode, scope, force = read_mode_update(await call.document()), self.scope(call), call.flag("force")
        is_mutable = self._is_mutable
        new = await self.registry.change(
            lambda state: update_mode(state, scope, mode, force=force, is_mutable=is_mutable)
        )
        return Answer({"mode": new})

    @_serves_both(
        "DELETE",
        "/mode",
        "Forget the mode {}; the one above holds then.",
        parameters=(RECURSIVE,),
        reply=documents.MODE,
        refuses=(422, 429, 500),
        by_leader=True,
    )
    async def delete_mode(self, call: Call) -> Answer:
        scope, is_recursive, is_mutable = self.scope(call), call.flag("recursive"), self._is_mutable
        old = await self.registry.change(
            lambda state: delete_mode(state, scope, is_recursive=is_recursive, is_mutable=is_mutable)
        )
        return Answer({"mode": old})

    @property
    def _is_mutable(self) -> bool:
        is_mutable: bool = self.registry.settings["mode.mutability"]
        return is_mutable
