"""Encodes and decodes JSON values of a JSON Schema. Start at `JsonCodec`."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final
from urllib.parse import urljoin

import jsonschema_rs

from moldau.schemas.errors import InvalidValueError
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.json_text import load, render

__all__ = ["JsonCodec"]

_VALIDATORS: Final = {
    4: (jsonschema_rs.Draft4Validator, jsonschema_rs.Draft4),
    6: (jsonschema_rs.Draft6Validator, jsonschema_rs.Draft6),
    7: (jsonschema_rs.Draft7Validator, jsonschema_rs.Draft7),
    2019: (jsonschema_rs.Draft201909Validator, jsonschema_rs.Draft201909),
    2020: (jsonschema_rs.Draft202012Validator, jsonschema_rs.Draft202012),
}


class JsonCodec:
    """Encodes values that fit the schema and rejects others; decodes any JSON, as readers may be lenient."""

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema

    def encode(self, value: Any) -> bytes:
        self.check(value)
        try:
            return render(value).encode()
        except (ValueError, RecursionError, TypeError) as error:
            raise InvalidValueError(f"the value cannot be written as JSON: {error}") from None

    def decode(self, body: bytes) -> Any:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise InvalidValueError("the data are not UTF-8, so they are not JSON") from None
        return load(text, "data", InvalidValueError)

    def encode_text(self, text: str) -> bytes:
        return self.encode(load(text, "value", InvalidValueError))

    def decode_text(self, body: bytes) -> str:
        return render(self.decode(body))

    def check(self, value: Any) -> None:
        """Raise for the first part of the value that does not fit the schema."""
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            place = "/".join(str(step) for step in error.instance_path)
            raise InvalidValueError(f"the value does not fit the JSON Schema at #/{place}: {error.message}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidValueError(f"the value cannot be JSON: {error}") from None

    @cached_property
    def _validator(self) -> Any:
        validator, draft = _VALIDATORS[self._schema.draft.number]
        raw = self._schema.raw
        base = raw.get("$id", raw.get("id", "")) if isinstance(raw, dict) else ""
        base = base if isinstance(base, str) else ""
        documents = {
            uri: document for name, document in self._schema.documents.items() for uri in (name, urljoin(base, name))
        }
        try:
            registry = jsonschema_rs.Registry(list(documents.items()), retriever=_refuse, draft=draft)
            return validator(raw, registry=registry, retriever=_refuse)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            first_line = str(error).partition("\n")[0]
            raise InvalidValueError(f"the JSON Schema cannot be used for values: {first_line}") from None


def _refuse(uri: str) -> Any:
    """Reject any URI: nothing is fetched, all references must be given with the schema."""
    raise ValueError(f"{uri} is not a reference of the schema")
