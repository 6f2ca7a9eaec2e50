"""What a schema registry said of the ids in records, remembered.

The broker's check of ids (`broker.data.schema_rules`) relies on what is remembered here and has only unknown ids asked
for, by `server.registry_questions`, from one thread. Start at `RegistrySchemaIds`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from moldau.broker.data.schema_rules import Question, RegisteredSchema, RegistryUnreachableError, SchemaId
from moldau.core.config import BrokerConfig

if TYPE_CHECKING:
    from moldau.client.registry_http import RegistryServers
    from moldau.server.registry_questions import RegistryQuestions

__all__ = ["RegistryAddress", "RegistrySchemaIds"]

SETTLED_S = 300.0
"""How long an id that fits is taken for good: subjects are deleted rarely."""
MISSING_S = 0.1
"""How long at least an id that does not fit is refused without asking, so that nobody's mistake floods a registry."""
PAUSE_S = 1.0
"""How long nobody asks after a registry could not be reached: producers come again anyway."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_logger = logging.getLogger("moldau.server.schema_ids")


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where the registry is, and how much to remember of it."""

    servers: RegistryServers
    missing_ttl_s: float = 0
    max_ids: int = 10_000

    @classmethod
    def of(cls, config: BrokerConfig, found: Callable[[], Sequence[str]] = tuple) -> RegistryAddress:
        """By the broker's settings; `found` gives the instances that announced themselves on this cluster."""
        # Imported here: a broker that checks no ids starts without HTTP.
        from moldau.client.registry_http import RegistryServers

        value = config.value
        in_url = value("confluent.basic.auth.credentials.source") == "URL"
        store = value("confluent.ssl.truststore.location")
        return cls(
            RegistryServers(
                urls=tuple(value("confluent.schema.registry.url") or found()),
                user_info=None if in_url else value("confluent.basic.auth.user.info"),
                truststore=(store, value("confluent.ssl.truststore.password") or "") if store else None,
            ),
            missing_ttl_s=value("confluent.missing.id.cache.ttl.sec"),
            max_ids=value("confluent.schema.registry.max.cache.size"),
        )


class RegistrySchemaIds:
    """A `SchemaIds`. What is remembered may be read from any thread; asking is for one at a time."""

    def __init__(
        self,
        address: Callable[[], RegistryAddress],
        *,
        questions: RegistryQuestions | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._questions = questions
        self._now_s = now_s
        self._remembered: dict[SchemaId, tuple[RegisteredSchema, float]] = {}
        self._misfits: dict[Question, float] = {}
        """When an answer last did not fit. By question: a topic's mistakes must not be held against another's ids."""
        self._failure: RegistryUnreachableError | None = None
        self._failed_at = 0.0

    def current(self, question: Question) -> RegisteredSchema | None:
        schema_id, rule = question
        schema, asked_at = self._remembered.get(schema_id, (None, 0.0))
        if schema is None:
            return None
        if rule.fits(schema):
            good_for_s = SETTLED_S
        else:
            asked_at = self._misfits.get(question, -math.inf)
            good_for_s = max(MISSING_S, self._address().missing_ttl_s)
        return schema if self._now_s() - asked_at < good_for_s else None

    def last_known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        found = self._remembered.get(schema_id)
        return None if found is None else found[0]

    def ask(self, questions: Iterable[Question]) -> Mapping[SchemaId, RegisteredSchema]:
        answers: dict[SchemaId, RegisteredSchema] = {}
        for schema_id, rule in questions:
            if schema_id not in answers:
                answers[schema_id] = self._ask(schema_id)
                _put(self._remembered, schema_id, (answers[schema_id], self._now_s()), self._address().max_ids)
            if not rule.fits(answers[schema_id]):
                _put(self._misfits, (schema_id, rule), self._now_s(), self._address().max_ids)
        return answers

    def _ask(self, schema_id: SchemaId) -> RegisteredSchema:
        if self._failure is not None and self._now_s() - self._failed_at < PAUSE_S:
            raise RegistryUnreachableError(str(self._failure))
        try:
            schema = self._asked().registered(schema_id, self._address().servers)
        except RegistryUnreachableError as error:
            if self._failure is None:
                _logger.warning("schema ids cannot be checked: %s", error)
            self._failure, self._failed_at = error, self._now_s()
            raise
        if self._failure is not None:
            _logger.info("schema ids can be checked again")
            self._failure = None
        return schema

    def _asked(self) -> RegistryQuestions:
        if self._questions is None:
            from moldau.server.registry_questions import RegistryQuestions

            self._questions = RegistryQuestions()
        return self._questions

    def close(self) -> None:
        if self._questions is not None:
            self._questions.close()


def _put(memory: dict[Key, Value], key: Key, value: Value, largest: int) -> None:
    """Keep the newest at the end; what was put in longest ago makes room."""
    memory.pop(key, None)
    memory[key] = value
    while len(memory) > largest:
        memory.pop(next(iter(memory)))
