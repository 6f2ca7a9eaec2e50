"""`/schemas`: schemas by id and by guid, and all of them. Start at `endpoints`."""

from __future__ import annotations

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Parameter, flag, number, text
from moldau.registry import schemas_of_documents as documents
from moldau.registry.documents import schema_document, schema_string_document
from moldau.registry.entities import SCHEMA_TYPES, SchemaVersion
from moldau.registry.queries import find_by_guid, find_by_id, page, schemas_below, subjects_by_alias
from moldau.registry.routes.resources import Resources, refusals
from moldau.registry.routes.subjects import DELETED, FIND_TAGS, FORMAT, PAGE, REFERENCE_FORMAT
from moldau.registry.subjects import context_of

__all__ = ["endpoints"]

ID = {"id": Parameter("id", "A schema's id.", {"type": "integer", "format": "int32"})}
GUID = {"guid": Parameter("guid", "A schema's guid.", {"type": "string", "format": "uuid"})}
SUBJECT = text("subject", "A subject that has the id; its context is the one that is looked into.")


class _Schemas:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def list_types(self, _call: Call) -> Answer:
        return Answer(list(SCHEMA_TYPES))

    async def list_schemas(self, call: Call) -> Answer:
        settings, state = self._resources.registry.settings, self._resources.state
        found = schemas_below(
            state,
            self._resources.prefix(call, ""),
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
        aliases = subjects_by_alias(state) if call.flag("aliases") else {}
        dialect = self._resources.dialect
        return Answer([schema_document(one, dialect, aliases=aliases.get(one.subject)) for one in shown])

    async def get_by_id(self, call: Call) -> Answer:
        schema = self._found(call)[0]
        max_id = self._resources.state.max_id(context_of(schema.subject)) if call.flag("fetchMaxId") else None
        return Answer(
            schema_string_document(
                schema,
                self._resources.dialect,
                text=self._resources.text(schema, call.text("format")),
                qualifies=call.text("referenceFormat").lower() == "qualified",
                max_id=max_id,
            )
        )

    async def get_text_by_id(self, call: Call) -> Answer:
        schema = self._found(call)[0]
        return Answer(content=self._resources.text(schema, call.text("format")).encode())

    async def list_subjects(self, call: Call) -> Answer:
        names = list(dict.fromkeys(schema.subject for schema in self._wanted(call)))
        return Answer(page(names, call.number("offset", 0), call.number("limit", -1)))

    async def list_versions(self, call: Call) -> Answer:
        places = [{"subject": schema.subject, "version": schema.version} for schema in self._wanted(call)]
        return Answer(page(places, call.number("offset", 0), call.number("limit", -1)))

    async def get_by_guid(self, call: Call) -> Answer:
        schema = find_by_guid(self._resources.state, call.parts["guid"])[0]
        text = self._resources.text(schema, call.text("format"))
        return Answer(schema_string_document(schema, self._resources.dialect, text=text, names_subject=False))

    async def list_ids(self, call: Call) -> Answer:
        found = find_by_guid(self._resources.state, call.parts["guid"])
        return Answer([{"context": context_of(schema.subject), "id": schema.id} for schema in found])

    def _found(self, call: Call) -> list[SchemaVersion]:
        return find_by_id(self._resources.state, call.number_in_path("id"), self._resources.subject_in_query(call))

    def _wanted(self, call: Call) -> list[SchemaVersion]:
        """All uses of the schema in its context, by whichever subject it was found."""
        schema = self._found(call)[0]
        users = self._resources.state.users_of_id(context_of(schema.subject), schema.id)
        return [user for user in users if call.flag("deleted") or not user.is_deleted]


def endpoints(resources: Resources) -> list[Endpoint]:
    schemas = _Schemas(resources)
    tag = "Schemas"
    return [
        Endpoint(
            method="GET",
            path="/schemas/ids/{id}",
            handle=schemas.get_by_id,
            summary="The schema with an id; soft-deleted ones still resolve.",
            parameters=(
                SUBJECT,
                FORMAT,
                REFERENCE_FORMAT,
                FIND_TAGS,
                flag("fetchMaxId", "Whether the highest id is told too."),
            ),
            parts=ID,
            reply=documents.SCHEMA_STRING,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas/ids/{id}/schema",
            handle=schemas.get_text_by_id,
            summary="The text of the schema with an id, as it is.",
            parameters=(SUBJECT, FORMAT),
            parts=ID,
            reply=documents.ANYTHING,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas/ids/{id}/subjects",
            handle=schemas.list_subjects,
            summary="The subjects that use an id.",
            parameters=(SUBJECT, DELETED, *PAGE),
            parts=ID,
            reply=documents.NAMES,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas/ids/{id}/versions",
            handle=schemas.list_versions,
            summary="The subjects and versions that use an id.",
            parameters=(SUBJECT, DELETED, *PAGE),
            parts=ID,
            reply=documents.SUBJECT_VERSIONS,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas",
            handle=schemas.list_schemas,
            summary="Schemas as wholes, of all subjects that begin alike.",
            parameters=(
                text("subjectPrefix", "How subjects begin."),
                flag("aliases", "Whether other names of a subject are told."),
                DELETED,
                flag("latestOnly", "Only the latest version of each subject."),
                text("ruleType", "Only those with a rule of this type."),
                number("offset", "How many to leave out.", 0),
                number("limit", "How many to give.", -1),
            ),
            reply=documents.SCHEMAS,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas/types",
            handle=schemas.list_types,
            summary="The types of schemas that are understood.",
            reply=documents.NAMES,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas/guids/{guid}",
            handle=schemas.get_by_guid,
            summary="The schema with a guid, whichever context has it.",
            parameters=(FORMAT,),
            parts=GUID,
            reply=documents.SCHEMA_STRING,
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/schemas/guids/{guid}/ids",
            handle=schemas.list_ids,
            summary="The ids a schema has, by context.",
            parts=GUID,
            reply=documents.CONTEXT_IDS,
            refusals=refusals(),
            tag=tag,
        ),
    ]
