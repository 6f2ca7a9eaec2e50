"""What is remembered of a registry, for how long, and what happens while it cannot be asked."""

from __future__ import annotations

import pytest

from moldau.broker.data.schema_rules import RegisteredSchema, RegistryUnreachableError, SchemaId, SubjectRule
from moldau.client.registry_http import RegistryServers
from moldau.core.config import BrokerConfig
from moldau.server.schema_ids import MISSING_S, PAUSE_S, SETTLED_S, RegistryAddress, RegistryLookup, RegistrySchemaIds

ORDERS = RegisteredSchema(frozenset({"orders-value"}))
RULE = SubjectRule("orders", "value", "TopicNameStrategy")


class Lookup(RegistryLookup):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[SchemaId] = []
        self.answer: RegisteredSchema | None = ORDERS

    def find(self, schema_id: SchemaId, servers: RegistryServers) -> RegisteredSchema:
        self.asked.append(schema_id)
        if self.answer is None:
            raise RegistryUnreachableError("gone")
        return self.answer


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def lookup() -> Lookup:
    return Lookup()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ids(lookup: Lookup, clock: Clock) -> RegistrySchemaIds:
    address = RegistryAddress(RegistryServers(("http://registry:8081",)), missing_ttl_s=2, max_ids=3)
    return RegistrySchemaIds(lambda: address, lookup=lookup, now_s=clock)


def test_nothing_is_known_of_an_id_before_it_was_asked_about(ids: RegistrySchemaIds, lookup: Lookup) -> None:
    assert ids.current((1, RULE)) is None
    assert ids.last_known(1) is None
    assert not lookup.asked


def test_what_fits_is_good_for_long(ids: RegistrySchemaIds, lookup: Lookup, clock: Clock) -> None:
    assert ids.ask([(1, RULE)]) == {1: ORDERS}
    clock.now_s += SETTLED_S - 1
    assert ids.current((1, RULE)) == ORDERS
    clock.now_s += 1
    assert ids.current((1, RULE)) is None
    assert ids.last_known(1) == ORDERS
    assert lookup.asked == [1]


def test_what_does_not_fit_is_asked_again_soon(ids: RegistrySchemaIds, lookup: Lookup, clock: Clock) -> None:
    lookup.answer = RegisteredSchema()
    ids.ask([(1, RULE)])
    clock.now_s += 1.9
    assert ids.current((1, RULE)) == RegisteredSchema()
    clock.now_s += 0.1
    assert ids.current((1, RULE)) is None


def test_one_topics_mistake_is_not_held_against_another(ids: RegistrySchemaIds, lookup: Lookup) -> None:
    other = SubjectRule("payments", "value", "TopicNameStrategy")
    assert ids.ask([(1, RULE), (1, other)]) == {1: ORDERS}
    assert lookup.asked == [1]
    assert ids.current((1, other)) == ORDERS, "which does not fit, and was asked just now"
    assert ids.current((1, SubjectRule("late", "value", "TopicNameStrategy"))) is None, "nobody asked for this one"


def test_even_without_a_time_to_live_a_flood_of_mistakes_is_held_back(lookup: Lookup, clock: Clock) -> None:
    address = RegistryAddress(RegistryServers(("http://registry:8081",)))
    ids = RegistrySchemaIds(lambda: address, lookup=lookup, now_s=clock)
    lookup.answer = RegisteredSchema()
    ids.ask([(1, RULE)])
    clock.now_s += MISSING_S / 2
    assert ids.current((1, RULE)) == RegisteredSchema()
    clock.now_s += MISSING_S
    assert ids.current((1, RULE)) is None


def test_the_ids_asked_about_longest_ago_make_room(ids: RegistrySchemaIds) -> None:
    for schema_id in (1, 2, 3, 1, 4):
        ids.ask([(schema_id, RULE)])
    assert [ids.last_known(schema_id) is not None for schema_id in (1, 2, 3, 4)] == [True, False, True, True]


def test_a_registry_that_is_gone_is_left_alone_for_a_moment(
    ids: RegistrySchemaIds, lookup: Lookup, clock: Clock
) -> None:
    lookup.answer = None
    for _ in range(3):
        with pytest.raises(RegistryUnreachableError, match="gone"):
            ids.ask([(1, RULE)])
    assert lookup.asked == [1]
    clock.now_s += PAUSE_S
    lookup.answer = ORDERS
    assert ids.ask([(1, RULE)]) == {1: ORDERS}
    assert ids.ask([(2, RULE)]) == {2: ORDERS}


def test_the_address_is_what_the_settings_say() -> None:
    config = BrokerConfig(
        {
            "confluent.schema.registry.url": "http://one:8081, https://two:8082/base",
            "confluent.basic.auth.credentials.source": "USER_INFO",
            "confluent.basic.auth.user.info": "ada:secret",
            "confluent.ssl.truststore.location": "/trust.pem",
            "confluent.missing.id.cache.ttl.sec": "60",
            "confluent.schema.registry.max.cache.size": "5",
        }
    )
    assert RegistryAddress.of(config, lambda: ["http://announced"]) == RegistryAddress(
        RegistryServers(("http://one:8081", "https://two:8082/base"), "ada:secret", ("/trust.pem", "")), 60, 5
    )
    assert "secret" not in repr(RegistryAddress.of(config))


def test_without_a_url_the_registries_of_the_cluster_are_asked() -> None:
    assert RegistryAddress.of(BrokerConfig(), lambda: ["http://announced:8081"]).servers.urls == (
        "http://announced:8081",
    )
    assert RegistryAddress.of(BrokerConfig()).servers.urls == ()
