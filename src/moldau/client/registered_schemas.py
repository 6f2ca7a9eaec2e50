"""What serdes know of a registry: schemas by id, ids by subject, each asked for once in a process.

A message whose schema nobody knows is that message's fault. A registry that does not answer, or that refuses a schema,
is nobody's: it becomes a `ServiceError`, for which no record may be skipped. Start at `registered_schemas`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from moldau.client.errors import ClientError, UnreachableError
from moldau.client.schema_registry import RegisteredSchema, RegistryClient, RegistryRefusalError
from moldau.client.schema_values import UnfitValueError
from moldau.core.errors import ServiceError
from moldau.schemas.errors import SchemaError
from moldau.schemas.identity import SchemaReference

__all__ = ["RegisteredSchemas", "RegistryTroubleError", "SchemaText", "registered_schemas"]

NOT_FOUND, CONFLICT = 404, 409
UNKNOWN_FOR_S = 1.0
"""How long an id that was not found is believed not to be there: bad records come in crowds."""


class RegistryTroubleError(ClientError, ServiceError):
    """The registry cannot be asked, or does not accept a schema."""


class SchemaText(NamedTuple):
    """A schema as it is given to a registry."""

    schema_type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    message: str | None = None
    """Which of a Protobuf schema's messages, where it is not the first."""


class RegisteredSchemas:
    """One registry, as seen by all serdes of a process. May be used by any thread."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._latest: dict[str, RegisteredSchema] = {}
        self._written: dict[tuple[str, SchemaText], RegisteredSchema] = {}
        self._unknown: dict[int | str, tuple[float, str]] = {}

    def schema(self, name: int | str) -> RegisteredSchema:
        """The schema with an id or a guid; raises `UnfitValueError` where there is none."""
        with self._lock:
            until, told = self._unknown.get(name, (0.0, ""))
            if time.monotonic() < until:
                raise UnfitValueError(told)
            try:
                with _troubles(f"schema {name}"):
                    return self._client.schema(name)
            except RegistryRefusalError as error:
                told = f"it names schema {name}, which the registry does not have: {error}"
                self._unknown[name] = (time.monotonic() + UNKNOWN_FOR_S, told)
                raise UnfitValueError(told) from None
            except SchemaError as error:
                raise UnfitValueError(f"schema {name} of the registry cannot be used: {error}") from None

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The last version of a subject, or None where it has none; the first answer holds for the process."""
        with self._lock:
            if subject not in self._latest:
                try:
                    with _troubles(f"subject {subject}"):
                        self._latest[subject] = self._client.latest(subject)
                except RegistryRefusalError:
                    return None
            return self._latest[subject]

    def registered(self, subject: str, schema: SchemaText, *, may_register: bool) -> RegisteredSchema:
        """A schema with the id it has under a subject, registered there where that is allowed."""
        with self._lock:
            known = self._written.get((subject, schema))
            if known is None:
                send = self._client.register if may_register else self._client.look_up
                known = self._written[subject, schema] = self._sent(send, subject, schema)
            return known

    def parsed_name(self, schema: SchemaText) -> str | None:
        """What a schema calls its records, for the strategies that name subjects so."""
        try:
            with self._lock, _troubles("the schema's references"):
                return self._client.parsed(*schema[:3]).name
        except (SchemaError, RegistryRefusalError) as error:
            raise RegistryTroubleError(f"the schema cannot be used: {error}") from None

    @staticmethod
    def _sent(send: Callable[..., RegisteredSchema], subject: str, schema: SchemaText) -> RegisteredSchema:
        try:
            with _troubles(f"subject {subject}"):
                return send(subject, *schema[:3])
        except RegistryRefusalError as error:
            raise RegistryTroubleError(
                f"the schema is not registered under subject {subject}: {error}; register it, or set "
                "auto.register.schemas=true"
            ) from None
        except SchemaError as error:
            raise RegistryTroubleError(f"the schema for subject {subject} cannot be used: {error}") from None


@contextmanager
def _troubles(about: str) -> Iterator[None]:
    """Let through what was not found; everything else that a registry can say becomes `RegistryTroubleError`."""
    try:
        yield
    except UnreachableError as error:
        raise RegistryTroubleError(f"{error} ({about}); start it, or correct schema.registry.url") from None
    except RegistryRefusalError as error:
        if error.status == NOT_FOUND:
            raise
        raise RegistryTroubleError(f"the schema registry refuses {about}: {error}{_advice(error)}") from None
    except ClientError as error:
        raise RegistryTroubleError(f"{about} cannot be asked for: {error}") from None


def _advice(refusal: RegistryRefusalError) -> str:
    if refusal.status == CONFLICT:
        return (
            "; make the schema fit what was written before (a new field needs a default), write to another topic, or "
            "change the compatibility level of the subject"
        )
    return "; check basic.auth.user.info" if refusal.status in (401, 403) else ""


_known: dict[tuple[str, str | None], RegisteredSchemas] = {}
_known_lock = threading.Lock()


def registered_schemas(url: str, user_info: str | None) -> RegisteredSchemas:
    """The process's view of the registry at a URL (several with commas between); connects when asked."""
    with _known_lock:
        found = _known.get((url, user_info))
        if found is None:
            properties = {"schema.registry.url": url}
            if user_info:
                properties["basic.auth.user.info"] = user_info
            found = _known[url, user_info] = RegisteredSchemas(RegistryClient(properties))
        return found
