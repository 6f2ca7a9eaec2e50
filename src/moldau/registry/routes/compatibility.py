"""`/compatibility`: whether a schema might be registered, and if not, why. Start at `endpoints`."""

from __future__ import annotations

from functools import partial

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, flag
from moldau.registry import schemas_of_documents as documents
from moldau.registry.decisions.compatibility import examined
from moldau.registry.errors import InvalidSchemaTextError
from moldau.registry.queries import parse_version
from moldau.registry.requests import RegisterRequest
from moldau.registry.routes.resources import SUBJECT, VERSION, Resources, refusals
from moldau.registry.routes.subjects import NORMALIZE
from moldau.registry.state import State

__all__ = ["endpoints"]

VERBOSE = flag("verbose", "Whether reasons are told; a schema that does not parse is then a reason too.")


class _Compatibility:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def test_against_version(self, call: Call) -> Answer:
        return await self._test(call, parse_version(call.parts["version"]))

    async def test_as_registering(self, call: Call) -> Answer:
        return await self._test(call, None)

    async def _test(self, call: Call, version: int | None) -> Answer:
        request = RegisterRequest.of(await call.document())
        is_verbose = call.flag("verbose")
        try:
            messages = await self._resources.registry.examine(
                partial(
                    self._examined,
                    subject=self._resources.subject(call),
                    request=request,
                    version=version,
                    normalize=call.flag("normalize"),
                )
            )
        except InvalidSchemaTextError as error:
            if not is_verbose:
                raise
            messages = (str(error),)
        reasons = {"messages": list(messages)} if is_verbose and messages else {}
        return Answer({"is_compatible": not messages, **reasons})

    def _examined(
        self, state: State, *, subject: str, request: RegisterRequest, version: int | None, normalize: bool
    ) -> tuple[str, ...]:
        parser, defaults = self._resources.registry.parser, self._resources.defaults
        return examined(state, parser, subject, request, version, defaults=defaults, normalize=normalize)


def endpoints(resources: Resources) -> list[Endpoint]:
    compatibility = _Compatibility(resources)
    tag = "Compatibility"
    return [
        Endpoint(
            method="POST",
            path="/compatibility/subjects/{subject}/versions",
            handle=compatibility.test_as_registering,
            summary="Whether a schema is compatible with a subject, as registering would find.",
            parameters=(NORMALIZE, VERBOSE),
            parts={"subject": SUBJECT},
            body=documents.REGISTER_REQUEST,
            reply=documents.COMPATIBILITY,
            refusals=refusals(415, 422),
            tag=tag,
        ),
        Endpoint(
            method="POST",
            path="/compatibility/subjects/{subject}/versions/{version}",
            handle=compatibility.test_against_version,
            summary="Whether a schema is compatible with one version.",
            parameters=(NORMALIZE, VERBOSE),
            parts={"subject": SUBJECT, "version": VERSION},
            body=documents.REGISTER_REQUEST,
            reply=documents.COMPATIBILITY,
            refusals=refusals(415, 422),
            tag=tag,
        ),
    ]
