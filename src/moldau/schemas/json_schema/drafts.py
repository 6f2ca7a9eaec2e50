"""The drafts of JSON Schema, and the check that a schema is valid in its draft.

A schema that names no draft, or an unknown one, is read as draft 7. Start at `Draft.of` and `check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import jsonschema_rs
from referencing import Specification
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_text import Json

__all__ = ["Draft", "check"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One version of the specification."""

    uri: str
    specification: Specification[Json]
    number: int
    """4, 6, 7, 2019 or 2020; used where drafts differ."""

    @staticmethod
    def of(schema: Json) -> Draft:
        """The draft named by the schema's `$schema`; draft 7 if there is none or it is unknown."""
        named = schema.get("$schema") if isinstance(schema, dict) else None
        return _DRAFTS.get(named.rstrip("#"), _DEFAULT) if isinstance(named, str) else _DEFAULT


_DRAFTS: Final = {
    draft.uri.rstrip("#"): draft
    for draft in (
        Draft("http://json-schema.org/draft-04/schema#", DRAFT4, 4),
        Draft("http://json-schema.org/draft-06/schema#", DRAFT6, 6),
        Draft("http://json-schema.org/draft-07/schema#", DRAFT7, 7),
        Draft("https://json-schema.org/draft/2019-09/schema", DRAFT201909, 2019),
        Draft("https://json-schema.org/draft/2020-12/schema", DRAFT202012, 2020),
    )
}
_DEFAULT: Final = _DRAFTS["http://json-schema.org/draft-07/schema"]


def check(schema: Json, draft: Draft) -> None:
    """Raise if the schema breaks a rule of its draft, such as a `type` that does not exist."""
    # `$schema` is replaced by the draft's own URI: an unknown one would be fetched from the network.
    names_one = isinstance(schema, dict) and isinstance(schema.get("$schema", ""), str)
    told = {**schema, "$schema": draft.uri} if names_one else schema
    try:
        jsonschema_rs.meta.validate(told)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(str(step) for step in error.instance_path)
        raise InvalidSchemaError(f"Invalid JSON Schema: {error.message} (at #/{place})") from None
    except (ValueError, jsonschema_rs.ReferencingError, RecursionError) as error:
        raise InvalidSchemaError(f"Invalid JSON Schema: {error}") from None
