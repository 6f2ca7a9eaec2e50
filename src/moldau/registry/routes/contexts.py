"""`/contexts`: listing contexts and deleting one. Start at `Contexts`."""

from __future__ import annotations

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import text
from moldau.registry.decisions.deletion import delete_context
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import serves
from moldau.registry.routes.parameters import PAGE
from moldau.registry.routes.resource import Resource, page_answer

__all__ = ["Contexts"]


class Contexts(Resource):
    tag = "Contexts"

    @serves(
        "GET",
        "/contexts",
        "The contexts there are.",
        parameters=(*PAGE, text("contextPrefix", "How names begin.")),
        reply=documents.NAMES,
    )
    async def list_contexts(self, call: Call) -> Answer:
        prefix = call.text("contextPrefix")
        return page_answer(call, [name for name in self.state.contexts() if name.startswith(prefix)])

    @serves(
        "DELETE",
        "/contexts/{context}",
        "Forget a context that has no subjects.",
        status=204,
        refuses=(422, 429, 500),
        by_leader=True,
    )
    async def delete_context(self, call: Call) -> Answer:
        context = self.context(call)
        await self.registry.change(lambda state: delete_context(state, context))
        return Answer(status=204)
