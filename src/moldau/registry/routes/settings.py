"""`/config` and `/mode`: settings of everything, of a context, of a subject. Start at `endpoints`."""

from __future__ import annotations

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, flag
from moldau.registry import schemas_of_documents as documents
from moldau.registry.decisions.settings import delete_config, delete_mode, update_config, update_mode
from moldau.registry.documents import config_document, config_update_document
from moldau.registry.errors import ConfigNotSetError, ModeNotSetError
from moldau.registry.requests import read_config_update, read_mode_update
from moldau.registry.routes.resources import SUBJECT, Resources, refusals
from moldau.registry.scopes import effective_config, effective_mode

__all__ = ["endpoints"]

DEFAULT_TO_GLOBAL = flag("defaultToGlobal", "Whether what holds is told where nothing is set.")
FORCE = flag("force", "Whether IMPORT is set although there are schemas.")
RECURSIVE = flag("recursive", "Whether modes of all subjects within go too.")


class _Settings:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def get_config(self, call: Call) -> Answer:
        scope, state = self._resources.scope(call), self._resources.state
        own = state.configs.get(scope)
        if "subject" not in call.parts or call.flag("defaultToGlobal"):
            return Answer(config_document(effective_config(state, scope, self._resources.defaults)))
        if own is None:
            raise ConfigNotSetError(scope or "")
        return Answer(config_document(own))

    async def put_config(self, call: Call) -> Answer:
        changes, scope = read_config_update(await call.document()), self._resources.scope(call)
        config = await self._resources.registry.change(lambda state: update_config(state, scope, changes))
        return Answer(config_update_document(config))

    async def delete_config(self, call: Call) -> Answer:
        scope, defaults = self._resources.scope(call), self._resources.defaults
        config = await self._resources.registry.change(lambda state: delete_config(state, scope, defaults=defaults))
        return Answer(config_document(config))

    async def get_mode(self, call: Call) -> Answer:
        scope, state = self._resources.scope(call), self._resources.state
        if "subject" not in call.parts or call.flag("defaultToGlobal"):
            return Answer({"mode": effective_mode(state, scope)})
        if scope not in state.modes:
            raise ModeNotSetError(scope or "")
        return Answer({"mode": state.modes[scope]})

    async def put_mode(self, call: Call) -> Answer:
        mode, scope, force = read_mode_update(await call.document()), self._resources.scope(call), call.flag("force")
        is_mutable = self._resources.registry.settings["mode.mutability"]
        new = await self._resources.registry.change(
            lambda state: update_mode(state, scope, mode, force=force, is_mutable=is_mutable)
        )
        return Answer({"mode": new})

    async def delete_mode(self, call: Call) -> Answer:
        scope, is_recursive = self._resources.scope(call), call.flag("recursive")
        is_mutable = self._resources.registry.settings["mode.mutability"]
        old = await self._resources.registry.change(
            lambda state: delete_mode(state, scope, is_recursive=is_recursive, is_mutable=is_mutable)
        )
        return Answer({"mode": old})


def endpoints(resources: Resources) -> list[Endpoint]:
    return [
        endpoint
        for path in ("/config", "/config/{subject}", "/mode", "/mode/{subject}")
        for endpoint in _at(path, _Settings(resources), resources)
    ]


def _at(path: str, settings: _Settings, resources: Resources) -> list[Endpoint]:
    is_config = path.startswith("/config")
    parts = {"subject": SUBJECT} if "{" in path else {}
    whose = "of a subject" if parts else "of everything"
    writing, tag = resources.writing, "Config" if is_config else "Mode"
    return [
        Endpoint(
            method="GET",
            path=path,
            handle=settings.get_config if is_config else settings.get_mode,
            summary=f"The {tag.lower()} {whose}.",
            parameters=(DEFAULT_TO_GLOBAL,),
            parts=parts,
            reply=documents.CONFIG if is_config else documents.MODE,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="PUT",
            path=path,
            handle=writing(settings.put_config if is_config else settings.put_mode),
            summary=f"Change the {tag.lower()} {whose}.",
            parameters=() if is_config else (FORCE,),
            parts=parts,
            body=documents.CONFIG_UPDATE if is_config else documents.MODE,
            reply=documents.CONFIG_UPDATE if is_config else documents.MODE,
            refusals=refusals(415, 422, 500),
            tag=tag,
        ),
        Endpoint(
            method="DELETE",
            path=path,
            handle=writing(settings.delete_config if is_config else settings.delete_mode),
            summary=f"Forget the {tag.lower()} {whose}; the one above holds then.",
            parameters=() if is_config else (RECURSIVE,),
            parts=parts,
            reply=documents.CONFIG if is_config else documents.MODE,
            refusals=refusals(422, 500),
            tag=tag,
        ),
    ]
