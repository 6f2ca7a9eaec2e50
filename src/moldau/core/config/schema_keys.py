"""Broker settings for schema id validation: the registry's address, and the defaults that topics inherit.

Confluent's keys. The topics' own keys are in `core.config.topic_keys`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from moldau.core.config.key import ConfigKey, ConfigType, Dynamic, at_least, one_of
from moldau.core.config.topic_keys import SUBJECT_STRATEGIES

__all__ = ["SCHEMA_KEYS"]

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST, PASSWORD = ConfigType.LIST, ConfigType.PASSWORD
CLUSTER = Dynamic.CLUSTER


def _urls(values: Any) -> str | None:
    for value in values:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return "must be a list of http://host:port"
    return None


TOPIC_DEFAULTS = [
    *(
        ConfigKey(f"confluent.{side}.schema.validation", BOOLEAN, False, f"{words} for all topics.", None, CLUSTER)
        for side, words in (("key", "Check the schema ids of keys"), ("value", "Check the schema ids of values"))
    ),
    *(
        ConfigKey(
            f"confluent.{side}.subject.name.strategy",
            STRING,
            SUBJECT_STRATEGIES[0],
            f"Default of confluent.{side}.subject.name.strategy.",
            one_of(*SUBJECT_STRATEGIES),
            CLUSTER,
        )
        for side in ("key", "value")
    ),
]

REGISTRY = [
    ConfigKey(
        "confluent.schema.registry.url",
        LIST,
        [],
        "The schema registry that knows the ids, as one or more http://host:port. Empty: the registry whose "
        "instances are members of the group schema-registry on this cluster.",
        _urls,
        CLUSTER,
    ),
    ConfigKey(
        "confluent.schema.registry.max.cache.size", INT, 10_000, "Schema ids that are remembered.", at_least(1), CLUSTER
    ),
    ConfigKey(
        "confluent.missing.id.cache.ttl.sec",
        LONG,
        0,
        "How long an id that is not registered as it should be is refused without asking the registry again. With 0 "
        "it is asked again ten times a second at most.",
        at_least(0),
        CLUSTER,
    ),
    ConfigKey(
        "confluent.basic.auth.credentials.source",
        STRING,
        "URL",
        "Where user and password for the registry stand: in its URL, or in confluent.basic.auth.user.info.",
        one_of("URL", "USER_INFO"),
        CLUSTER,
    ),
    ConfigKey("confluent.basic.auth.user.info", PASSWORD, None, "The registry's user:password.", None, CLUSTER),
    ConfigKey("confluent.ssl.truststore.location", STRING, None, "Whom to trust at https: JKS, PKCS12 or PEM."),
    ConfigKey("confluent.ssl.truststore.password", PASSWORD, None, "The password of that truststore."),
]

SCHEMA_KEYS = [*TOPIC_DEFAULTS, *REGISTRY]
