"""Listeners with TLS: real handshakes, and mistakes in files that are told in one line."""

from __future__ import annotations

import base64
import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.unit.http.servers import Running, app_of, serving
from tests.unit.security.test_keystores import KEY_STORE
from websockets.sync.client import connect

from moldau.core.errors import InvalidConfigError
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, WebSocketEndpoint
from moldau.http.sockets import Socket
from moldau.http.tls import ClientCertificates, Listener, TlsFiles, server_context, server_context_of_pem
from moldau.security.keystores import private_key_pem


class Authority:
    """Signs certificates for localhost, in files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = folder / "ca.pem"
        self.certificate.write_bytes(self._pem(self._signed(self._name, self._key.public_key(), is_authority=True)))

    def issue(self, name: str, password: str | None = None) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        files = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        files[0].write_bytes(self._pem(self._signed(subject, key.public_key(), is_authority=False)))
        form = serialization.PrivateFormat.PKCS8
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))
        return files

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        usage = x509.KeyUsage(True, False, False, False, False, is_authority, is_authority, False, False)
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(authority_id, critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @staticmethod
    def _pem(certificate: x509.Certificate) -> bytes:
        return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


async def hello(call: Call) -> Answer:
    return Answer(call.url.scheme)


async def hello_in_socket(socket: Socket) -> None:
    await socket.accept()
    await socket.send_text(socket.url.scheme)


APP = app_of(
    Endpoint(method="GET", path="/", handle=hello, summary=""),
    WebSocketEndpoint(path="/socket", handle=hello_in_socket, summary=""),
)


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.certificate)


def test_requests_and_sockets_come_over_tls_and_plain_text_does_not(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = authority.issue("server")
    with serving(APP, tls=server_context(TlsFiles(certificate, key))) as server:
        with server.connect(trusting(authority)) as client:
            client.request("GET", "/", "connection: close")
            assert client.head()[0] == 200
            assert client.read() == b'"https"'
        with connect(f"wss://localhost:{server.port}/socket", ssl=trusting(authority)) as socket:
            assert socket.recv(10) == "wss"
        with server.connect() as client:
            client.request("GET", "/")
            assert b"HTTP/1.1 200" not in client.read()
        with pytest.raises(ssl.SSLCertVerificationError):
            server.connect(ssl.create_default_context())
    assert not [record for record in caplog.records if record.exc_info]


def test_a_key_may_have_a_password(authority: Authority) -> None:
    certificate, key = authority.issue("locked", password="secret")
    server_context(TlsFiles(certificate, key, "secret"))
    for password in (None, "wrong"):
        with pytest.raises(InvalidConfigError, match=r"locked\.key cannot be used: .*password is wrong or missing"):
            server_context(TlsFiles(certificate, key, password))
    assert "secret" not in repr(TlsFiles(certificate, key, "secret"))


def ask_status(server: Running, tls: ssl.SSLContext) -> int:
    with server.connect(tls) as client:
        client.request("GET", "/")
        return client.head()[0]


def test_clients_may_have_to_show_a_certificate(authority: Authority) -> None:
    certificate, key = authority.issue("strict")
    context = server_context(TlsFiles(certificate, key, clients=ClientCertificates(authority.certificate)))
    known = trusting(authority)
    known.load_cert_chain(*authority.issue("client"))
    with serving(APP, tls=context) as server:
        assert ask_status(server, known) == 200
        with pytest.raises(OSError, match=r"certificate required|reset|closed"):
            ask_status(server, trusting(authority))


def test_a_key_of_a_java_key_store_serves_too(tmp_path: Path) -> None:
    store = tmp_path / "keys.jks"
    store.write_bytes(base64.b64decode(KEY_STORE))
    pem = private_key_pem(str(store), "secret1", "secret2")
    assert pem is not None
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    with (
        serving(APP, tls=server_context_of_pem(pem.certificate_chain, pem.key)) as server,
        server.connect(unchecked) as client,
    ):
        client.request("GET", "/")
        assert client.head()[0] == 200


def test_mistakes_in_files_name_the_file(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("one")
    _, other_key = authority.issue("two")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nothing")
    for files, message in [
        (TlsFiles(tmp_path / "missing.pem"), r"cannot read .*missing\.pem: No such file"),
        (TlsFiles(certificate, tmp_path), r"cannot read .*: Is a directory"),
        (TlsFiles(certificate, other_key), r"one\.pem and the key .*two\.key cannot be used: they do not belong"),
        (TlsFiles(nonsense, key), r"nonsense\.pem .* cannot be used: not PEM"),
        (TlsFiles(certificate), r"one\.pem cannot be used: not PEM"),
        (TlsFiles(certificate, key, clients=ClientCertificates(nonsense)), r"clients' certificates .*nonsense\.pem"),
    ]:
        with pytest.raises(InvalidConfigError, match=message):
            server_context(files)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://0.0.0.0:8088", Listener("http", "0.0.0.0", 8088)),
        ("https://Host.example", Listener("https", "host.example", 8082)),
        ("HTTPS://[::1]:0", Listener("https", "::1", 0)),
        ("localhost:1", Listener("http", "localhost", 1)),
        ("http://:8083", Listener("http", "", 8083)),
    ],
)
def test_listeners_are_read(text: str, expected: Listener) -> None:
    assert Listener.parse(text, default_port=8082) == expected


@pytest.mark.parametrize("text", ["ftp://x:1", "http://x:99999", "http://x:y", "SASL_SSL://x:1"])
def test_listeners_that_are_none_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"listeners={text}"):
        Listener.parse(text, default_port=8082)
