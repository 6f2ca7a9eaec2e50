"""Registry, REST proxy and Connect over https, with the keys that their users have: PEM, PKCS12, a client's own."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from tests.integration.connect.conftest import cluster_settings
from tests.integration.server_process import wait_until
from tests.unit.http.test_tls import Authority

from moldau.core.errors import InvalidConfigError
from moldau.registry.instance import RegistryInstance
from moldau.registry.settings import RegistrySettings
from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

HTTPS = "https://127.0.0.1:0"


class Keys:
    """One certificate for localhost, in the formats of Kafka's settings."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.certificate, self.key = self.authority.issue("localhost")
        self.pem = folder / "server.pem"
        self.pem.write_bytes(self.key.read_bytes() + self.certificate.read_bytes())
        self.pkcs12 = folder / "server.p12"
        certificate, authority = (
            x509.load_pem_x509_certificate(path.read_bytes()) for path in (self.certificate, self.authority.certificate)
        )
        key = load_pem_private_key(self.key.read_bytes(), None)
        self.pkcs12.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"server",
                key,  # type: ignore[arg-type]
                certificate,
                [authority],
                BestAvailableEncryption(b"changeit"),
            )
        )

    def client(self, url: str, *, with_certificate: bool = False) -> httpx.Client:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if with_certificate:
            context.load_cert_chain(self.certificate, self.key)
        return httpx.Client(base_url=url.replace("127.0.0.1", "localhost"), verify=context, timeout=60)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def test_registries_over_https_forward_to_their_leader(moldau_broker: Broker, keys: Keys) -> None:
    settings = {
        "listeners": HTTPS,
        "host.name": "localhost",
        "schema.registry.group.id": "over-https",
        "kafkastore.topic": "_schemas_over_https",
        "ssl.keystore.location": str(keys.pem),
        "ssl.truststore.location": str(keys.authority.certificate),
    }
    with (
        SchemaRegistry(moldau_broker.bootstrap_servers, settings) as one,
        SchemaRegistry(moldau_broker.bootstrap_servers, settings) as other,
    ):
        wait_until(lambda: one.is_leader or other.is_leader, what="a leader")
        for number, registry in enumerate((one, other)):
            with keys.client(registry.url) as client:
                answer = client.post(f"/subjects/s{number}/versions", json={"schema": '"int"'})
                assert answer.status_code == 200, answer.text
                assert f"s{number}" in client.get("/subjects").json()


def test_a_rest_proxy_over_https_with_a_pkcs12_store(moldau_broker: Broker, keys: Keys) -> None:
    """Its settings are the listener's: clients of the brokers, which are plain, do not get them."""
    settings = {
        "listeners": HTTPS,
        "ssl.keystore.location": str(keys.pkcs12),
        "ssl.keystore.password": "changeit",
        "ssl.keystore.type": "PKCS12",
    }
    with RestProxy(moldau_broker.bootstrap_servers, settings) as rest, keys.client(rest.url) as client:
        body, content = '{"records": [{"value": "aGk="}]}', "application/vnd.kafka.binary.v2+json"
        answer = client.post("/topics/over-https", content=body, headers={"content-type": content})
        assert answer.json()["offsets"][0]["error_code"] is None
        created = client.post(
            "/consumers/g", json={"format": "json"}, headers={"content-type": "application/vnd.kafka.v2+json"}
        )
        assert created.json()["base_uri"].startswith("https://localhost:")


def test_a_connect_worker_over_https_that_asks_for_a_certificate(moldau_broker: Broker, keys: Keys) -> None:
    prefix = "listeners.https.ssl."
    settings = {
        **cluster_settings(),
        "listeners": HTTPS,
        f"{prefix}keystore.location": str(keys.pem),
        f"{prefix}truststore.location": str(keys.authority.certificate),
        f"{prefix}client.authentication": "REQUIRED",
    }
    with ConnectWorker(moldau_broker.bootstrap_servers, settings) as worker:
        with keys.client(worker.url, with_certificate=True) as client:
            assert client.get("/connectors").json() == []
        with keys.client(worker.url) as client, pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            client.get("/connectors")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "needs ssl.keystore.location"),
        ({"ssl.keystore.location": "/nowhere"}, "cannot read the key store /nowhere"),
        ({"ssl.keystore.location": "PKCS12", "ssl.keystore.password": "wrong"}, "no private key in it"),
        ({"ssl.keystore.location": "PEM", "ssl.client.auth": "true"}, "needs ssl.truststore.location"),
        ({"ssl.keystore.location": "PEM", "ssl.client.auth": "perhaps"}, "use NONE, REQUESTED or REQUIRED"),
    ],
)
def test_keys_that_cannot_be_used_are_named(keys: Keys, settings: dict[str, str], complaint: str) -> None:
    stores = {"PEM": str(keys.pem), "PKCS12": str(keys.pkcs12)}
    given = {name: stores.get(text, text) for name, text in settings.items()}

    async def start() -> None:
        await RegistryInstance(RegistrySettings.of({"listeners": HTTPS, **given})).start()

    with pytest.raises(InvalidConfigError, match=complaint):
        asyncio.run(start())
