"""Our clients log in to Apache Kafka over SASL, and are refused as any client is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.free_ports import free_port
from tests.oracle.apache_kafka import ApacheKafka, needs_apache_kafka

from moldau.client.admin import Admin, alter_scram_credentials
from moldau.client.coordination.membership import GroupMember
from moldau.client.errors import ClientError
from moldau.client.wire import WireClient
from moldau.client.wire_admin import describe_log_dirs
from moldau.core.errors import ErrorCode
from moldau.net.broker_client import BrokerClient
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.sasl_login import AuthenticationError
from moldau.security.sasl import mechanism_named

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice,=x", "secret"
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
REAUTHENTICATION_MS = 3_600_000
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class SaslKafka(NamedTuple):
    bootstrap: str
    sasl_port: int


@pytest.fixture(scope="module")
def kafka() -> Iterator[SaslKafka]:
    needs_apache_kafka()
    plaintext, controller, sasl = free_port(), free_port(), free_port()
    addresses = {"PLAINTEXT": plaintext, "CONTROLLER": controller, "SASL": sasl}
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in addresses.items()}
    settings = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": f"{listeners['PLAINTEXT']},{listeners['SASL']}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl.plain.sasl.jaas.config": PLAIN,
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": SCRAM,
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": SCRAM,
        "connections.max.reauth.ms": str(REAUTHENTICATION_MS),
    }
    with ApacheKafka(None, settings):
        bootstrap = f"127.0.0.1:{plaintext}"
        for name in MECHANISMS[1:]:
            alter_scram_credentials(Admin(bootstrap), USER, {name: (PASSWORD, 4096)}, ())
        yield SaslKafka(bootstrap, sasl)


def user_for(mechanism: str) -> str:
    return "alice" if mechanism == "PLAIN" else USER


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_blocking_client_logs_in(kafka: SaslKafka, mechanism: str) -> None:
    login = mechanism_named(mechanism, user_for(mechanism), PASSWORD)
    with WireClient("127.0.0.1", kafka.sasl_port, mechanism=login) as client:
        assert client.send(ApiKey.DESCRIBE_CLUSTER, Message()).cluster_id
        assert client.session_lifetime_ms == REAUTHENTICATION_MS
    with pytest.raises(ClientError, match="cannot log in") as refused:
        WireClient("127.0.0.1", kafka.sasl_port, mechanism=mechanism_named(mechanism, user_for(mechanism), "wrong"))
    assert refused.value.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_client_of_other_brokers_logs_in(kafka: SaslKafka, mechanism: str) -> None:
    async def story() -> None:
        for password, is_right in ((PASSWORD, True), ("wrong", False)):
            client = BrokerClient(
                "127.0.0.1",
                kafka.sasl_port,
                client_id="broker-1",
                mechanism=lambda password=password: mechanism_named(mechanism, user_for(mechanism), password),  # type: ignore[misc]
            )
            if is_right:
                assert (await client.send(ApiKey.DESCRIBE_CLUSTER, Message())).cluster_id
            else:
                with pytest.raises(AuthenticationError):
                    await client.send(ApiKey.DESCRIBE_CLUSTER, Message())
            client.close()

    asyncio.run(story())


def test_what_librdkafka_does_not_offer_is_asked_with_the_properties_of_the_others(kafka: SaslKafka) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="alice" password="secret";',
    }
    admin = Admin(f"127.0.0.1:{kafka.sasl_port}", properties)
    with admin.wire() as client:
        assert describe_log_dirs(client)
    member = GroupMember(
        lambda: admin,
        "schema-registry",
        protocol_type="sr",
        protocol="v0",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
    )
    deadline = time.monotonic() + 60
    while True:
        try:
            joined = member.join(b"here")
            break
        except ClientError as error:
            # The topic of the groups is made when first asked for.
            if error.error_code not in NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    assert list(joined.members.values()) == [b"here"]
    member.leave()
