"""`/schemas`: schemas by id or guid, and listing schemas. Start at `Schemas`."""

from __future__ import annotations

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import flag, number, text
from moldau.registry.entities import SCHEMA_TYPES, SchemaVersion
from moldau.registry.queries import find_by_guid, find_by_id, page, schemas_below, subjects_by_alias
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import serves
from moldau.registry.routes.documents import schema_document, schema_string_document
from moldau.registry.routes.parameters import DELETED, FIND_TAGS, FORMAT, PAGE, REFERENCE_FORMAT
from moldau.registry.routes.resource import Resource, page_answer, qualifies_references
from moldau.registry.subjects import context_of

__all__ = ["Schemas"]

SUBJECT = text("subject", "A subject that has the id; its context is the one that is looked into.")
FETCH_MAX_ID = flag("fetchMaxId", "Whether the highest id is given too.")
SEARCH = (
    text("subjectPrefix", "How subjects begin."),
    flag("aliases", "Whether other names of a subject are given."),
    DELETED,
    flag("latestOnly", "Only the latest version of each subject."),
    text("ruleType", "Only those with a rule of this type."),
    number("offset", "How many to leave out.", 0),
    number("limit", "How many to give.", -1),
)


class Schemas(Resource):
    tag = "Schemas"

    @serves(
        "GET",
        "/schemas/ids/{id}",
        "The schema with an id; soft-deleted ones still resolve.",
        parameters=(SUBJECT, FORMAT, REFERENCE_FORMAT, FIND_TAGS, FETCH_MAX_ID),
        reply=documents.SCHEMA_STRING,
        refuses=(429,),
    )
    async def get_by_id(self, call: Call) -> Answer:
        schema = self._find_version(call)
        document = schema_string_document(
            schema,
            self.dialect,
            text=await self.text(call, schema),
            qualifies=qualifies_references(call),
            max_id=self.state.max_id(context_of(schema.subject)) if call.flag("fetchMaxId") else None,
        )
        return Answer(document)

    @serves(
        "GET",
        "/schemas/ids/{id}/schema",
        "The text of the schema with an id, as it is.",
        parameters=(SUBJECT, FORMAT),
        reply=documents.ANYTHING,
        refuses=(429,),
    )
    async def get_text_by_id(self, call: Call) -> Answer:
        return await self.text_alone(call, self._find_version(call))

    @serves(
        "GET",
        "/schemas/ids/{id}/subjects",
        "The subjects that use an id.",
        parameters=(SUBJECT, DELETED, *PAGE),
        reply=documents.NAMES,
    )
    async def list_subjects(self, call: Call) -> Answer:
        return page_answer(call, list(dict.fromkeys(user.subject for user in self._users(call))))

    @serves(
        "GET",
        "/schemas/ids/{id}/versions",
        "The subjects and versions that use an id.",
        parameters=(SUBJECT, DELETED, *PAGE),
        reply=documents.SUBJECT_VERSIONS,
    )
    async def list_versions(self, call: Call) -> Answer:
        return page_answer(call, [{"subject": user.subject, "version": user.version} for user in self._users(call)])

    @serves(
        "GET",
        "/schemas",
        "Schemas as wholes, of all subjects that begin alike.",
        parameters=SEARCH,
        reply=documents.SCHEMAS,
    )
    async def list_schemas(self, call: Call) -> Answer:
        settings = self.registry.settings
        found = schemas_below(
            self.state,
            self.prefix(call, ""),
            with_deleted=call.flag("deleted"),
            only_latest=call.flag("latestOnly"),
            rule_type=call.text("ruleType"),
        )
        shown = page(
            found,
            call.number("offset", 0),
            call.number("limit", -1),
            default=settings["schema.search.default.limit"],
            largest=settings["schema.search.max.limit"],
        )
        aliases = subjects_by_alias(self.state) if call.flag("aliases") else {}
        return Answer([schema_document(one, self.dialect, aliases=aliases.get(one.subject)) for one in shown])

    @serves("GET", "/schemas/types", "The types of schemas that are understood.", reply=documents.NAMES)
    async def list_types(self, _call: Call) -> Answer:
        return Answer(list(SCHEMA_TYPES))

    @serves(
        "GET",
        "/schemas/guids/{guid}",
        "The schema with a guid, whichever context has it.",
        parameters=(FORMAT,),
        reply=documents.SCHEMA_STRING,
        refuses=(429,),
    )
    async def get_by_guid(self, call: Call) -> Answer:
        schema = find_by_guid(self.state, call.parts["guid"])[0]
        text = await self.text(call, schema)
        return Answer(schema_string_document(schema, self.dialect, text=text, names_subject=False))

    @serves("GET", "/schemas/guids/{guid}/ids", "The ids a schema has, by context.", reply=documents.CONTEXT_IDS)
    async def list_ids(self, call: Call) -> Answer:
        found = find_by_guid(self.state, call.parts["guid"])
        return Answer([{"context": context_of(schema.subject), "id": schema.id} for schema in found])

    def _find_version(self, call: Call) -> SchemaVersion:
        return find_by_id(self.state, call.number_in_path("id"), self.subject_in_query(call))[0]

    def _users(self, call: Call) -> list[SchemaVersion]:
        """All versions in the schema's context that use its id, whatever subject it was found by."""
        schema = self._find_version(call)
        users = self.state.users_of_id(context_of(schema.subject), schema.id)
        return [user for user in users if call.flag("deleted") or not user.is_deleted]
