"""A server with https and logins: what clients and the terminal see of it."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.unit.http.test_tls import Authority

from moldau.cli.ksql.command import main
from moldau.core.errors import InvalidConfigError
from moldau.ksql.instance import KsqlInstance
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.runtime.hosting.local_link import LocalLink
from moldau.testing import Broker

WAIT_S = 60.0
ANNA, BOB = ("anna", "secret"), ("bob", "other: secret")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def url(moldau_broker: Broker, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that asks for a login, over TLS."""
    folder = tmp_path_factory.mktemp("secured")
    certificate, key = authority.issue("localhost")
    (folder / "server.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    (folder / "users").write_text("# users\nanna: secret, admin\nbob: other: secret\n")
    settings = KsqlSettings.of(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "listeners": "https://127.0.0.1:0",
            "ksql.service.id": "secured_",
            "ksql.streams.state.dir": str(folder),
            "ssl.keystore.location": str(folder / "server.pem"),
            "authentication.method": "BASIC",
            "authentication.roles": "admin,operator",
            "moldau.users.file": str(folder / "users"),
        }
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> KsqlInstance:
        instance = KsqlInstance(settings, LocalLink(PipelineHost({})))
        await instance.start()
        return instance

    instance = asyncio.run_coroutine_threadsafe(start(), loop).result(WAIT_S)
    yield f"https://localhost:{instance.port}"
    asyncio.run_coroutine_threadsafe(instance.stop(), loop).result(WAIT_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def client(url: str, authority: Authority) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=url, verify=ssl.create_default_context(cafile=authority.certificate), timeout=WAIT_S
    ) as made:
        yield made


def test_a_login_with_the_right_role_is_needed(client: httpx.Client) -> None:
    for login in (None, ("anna", "wrong"), ("nobody", "secret")):
        answer = client.get("/info", auth=login)
        assert (answer.status_code, answer.json()["error_code"]) == (401, 40100)
        assert answer.headers["www-authenticate"].startswith('Basic realm="moldau"')
    answer = client.get("/info", auth=BOB)
    assert (answer.status_code, answer.json()["error_code"]) == (403, 40300)
    assert client.get("/info", auth=ANNA).status_code == 200
    assert client.post("/ksql", json={"ksql": "SHOW STREAMS;"}, auth=ANNA).status_code == 200
    assert client.get("/healthz").status_code == 200


def test_plain_http_is_not_answered(url: str) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(url.replace("https", "http") + "/info", timeout=WAIT_S)


def test_the_terminal_logs_in_over_https(
    url: str, authority: Authority, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "ksql.properties"
    config.write_text(f"ssl.truststore.location={authority.certificate}\n")
    trusted = ["--config-file", str(config), "-e", "SHOW TYPES;", url]
    assert main(["-u", "anna", "-p", "secret", *trusted]) == 0
    assert "Type Name" in capfd.readouterr().out
    assert main(["-u", "anna", "-p", "wrong", *trusted]) == 1
    assert "password is wrong" in capfd.readouterr().err
    assert main(["-u", "anna", "-p", "secret", "-e", "SHOW TYPES;", url]) == 1
    assert "certificate" in capfd.readouterr().err.lower()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"authentication.method": "DIGEST"}, "use NONE or BASIC"),
        ({"authentication.method": "BASIC"}, "needs moldau.users.file"),
        ({"authentication.method": "BASIC", "moldau.users.file": "/nowhere"}, "/nowhere cannot be read"),
        ({"listeners": "https://localhost:0"}, "needs ssl.keystore.location"),
        ({"listeners": "https://localhost:0", "ssl.keystore.location": "/nowhere"}, "cannot read the key store"),
    ],
)
def test_mistakes_in_settings_are_told(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        KsqlInstance(KsqlSettings.of(properties), LocalLink(PipelineHost({})))
