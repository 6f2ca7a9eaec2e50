"""`/compatibility`: whether a schema could be registered, and if not, why. Start at `Compatibility`."""

from __future__ import annotations

from functools import partial

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import flag
from moldau.registry.decisions.compatibility import check_version
from moldau.registry.errors import InvalidSchemaTextError
from moldau.registry.queries import parse_version
from moldau.registry.requests import RegisterRequest
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import serves
from moldau.registry.routes.parameters import NORMALIZE
from moldau.registry.routes.resource import Resource

__all__ = ["Compatibility"]

VERBOSE = flag("verbose", "Whether reasons are given; a schema that does not parse is then a reason too.")


class Compatibility(Resource):
    tag = "Compatibility"

    @serves(
        "POST",
        "/compatibility/subjects/{subject}/versions",
        "Whether a schema is compatible with a subject, as registering would find.",
        parameters=(NORMALIZE, VERBOSE),
        body=documents.REGISTER_REQUEST,
        reply=documents.COMPATIBILITY,
        refuses=(415, 422, 429),
    )
    async def test_as_registering(self, call: Call) -> Answer:
        return await self._check_answer(call, None)

    @serves(
        "POST",
        "/compatibility/subjects/{subject}/versions/{version}",
        "Whether a schema is compatible with one version.",
        parameters=(NORMALIZE, VERBOSE),
        body=documents.REGISTER_REQUEST,
        reply=documents.COMPATIBILITY,
        refuses=(415, 422, 429),
    )
    async def test_against_version(self, call: Call) -> Answer:
        return await self._check_answer(call, parse_version(call.parts["version"]))

    async def _check_answer(self, call: Call, version: int | None) -> Answer:
        request = RegisterRequest.of(await call.document())
        is_verbose = call.flag("verbose")
        try:
            messages = await self._messages(call, request, version)
        except InvalidSchemaTextError as error:
            if not is_verbose:
                raise
            messages = (str(error),)
        reasons = {"messages": list(messages)} if is_verbose and messages else {}
        return Answer({"is_compatible": not messages, **reasons})

    async def _messages(self, call: Call, request: RegisterRequest, version: int | None) -> tuple[str, ...]:
        question = partial(
            check_version,
            parser=self.registry.parser,
            subject=self.subject(call),
            request=request,
            version=version,
            defaults=self.defaults,
            normalize=call.flag("normalize"),
        )
        return await self.registry.examine(question)
