"""Java key stores, opened without Java. The stores below were made with keytool for this test alone."""

from __future__ import annotations

import base64
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.security.keystores import private_key_pem, trusted_certificates_pem

KEY_STORE = (
    "/u3+7QAAAAIAAAABAAAAAQACbWUAAAGh4G4ElgAAAH8wfTAOBgorBgEEASoCEQEBBQAEazphvZF8Fu+CX1vK1M3M8KmMaGbCpzy+"
    "NpE+eiWi9y/6DqRri9IV550kC+7irhwBTWszaZeK/xuL9NkdfZAVXtlPJ9dy+FYMeFKw1Wx2I9KsRfzPrEFDNYWqSry7JvMOc3hv"
    "4r8IxW26izdBAAAAAQAFWC41MDkAAAE7MIIBNzCB3qADAgECAgkAiPhVGacRSzUwCgYIKoZIzj0EAwIwDzENMAsGA1UEAxMEdGVz"
    "dDAgFw0yNjExMTUxODE3NDhaGA8yMTI2MTAyMjE4MTc0OFowDzENMAsGA1UEAxMEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEH"
    "A0IABN1JipL1NIKNKILek3YEFEz90gmW7CSHyl6A6fFSpLBydpNiomTEBVOC1/W0yXnyJ7qPp8W8GHmMG4PVTF408fujITAfMB0G"
    "A1UdDgQWBBQrNLR3wtdtOA+kKMFM16C42bq2ojAKBggqhkjOPQQDAgNIADBFAiEA6SLpkRi2q99ZupTwY185/KIJZs+3h4KddG8g"
    "iWavB6gCIBwCFL9EG9SXVURG5bE4U1W9ajF33LXCGoMRfL0MOiZSSNG7Me2gsv+HsF5svcdLFu3Hx7w="
)
TRUST_STORE = (
    "/u3+7QAAAAIAAAABAAAAAgACY2EAAAGh4G4F/QAFWC41MDkAAAE7MIIBNzCB3qADAgECAgkAiPhVGacRSzUwCgYIKoZIzj0EAwIw"
    "DzENMAsGA1UEAxMEdGVzdDAgFw0yNjExMTUxODE3NDhaGA8yMTI2MTAyMjE4MTc0OFowDzENMAsGA1UEAxMEdGVzdDBZMBMGByqG"
    "SM49AgEGCCqGSM49AwEHA0IABN1JipL1NIKNKILek3YEFEz90gmW7CSHyl6A6fFSpLBydpNiomTEBVOC1/W0yXnyJ7qPp8W8GHmM"
    "G4PVTF408fujITAfMB0GA1UdDgQWBBQrNLR3wtdtOA+kKMFM16C42bq2ojAKBggqhkjOPQQDAgNIADBFAiEA6SLpkRi2q99ZupTw"
    "Y185/KIJZs+3h4KddG8giWavB6gCIBwCFL9EG9SXVURG5bE4U1W9ajF33LXCGoMRfL0MOiZSG9wpJUtmdAe+HwUeWw6+CTZEmL0="
)


@pytest.fixture
def key_store(tmp_path: Path) -> str:
    (tmp_path / "keys.jks").write_bytes(base64.b64decode(KEY_STORE))
    return str(tmp_path / "keys.jks")


@pytest.fixture
def trust_store(tmp_path: Path) -> str:
    (tmp_path / "trust.jks").write_bytes(base64.b64decode(TRUST_STORE))
    return str(tmp_path / "trust.jks")


def test_trusted_certificates_come_out_as_pem(trust_store: str) -> None:
    pem = trusted_certificates_pem(trust_store, "secret1")
    context = ssl.create_default_context(cadata=pem)
    assert len(context.get_ca_certs()) + context.cert_store_stats()["x509"] >= 1


def test_a_private_key_comes_out_with_its_chain_and_the_two_belong_together(key_store: str, tmp_path: Path) -> None:
    pem = private_key_pem(key_store, "secret1", "secret2")
    assert pem is not None
    both = tmp_path / "both.pem"
    both.write_text(pem.key + pem.certificate_chain)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(both)


def test_wrong_passwords_are_named_by_what_they_cannot_open(key_store: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"keys\.jks cannot be opened with the given password"):
        private_key_pem(key_store, "wrong", "secret2")
    with pytest.raises(InvalidConfigError, match=r"private key in .* cannot be opened"):
        private_key_pem(key_store, "secret1", "wrong")


def test_a_torn_store_is_not_a_store(key_store: str) -> None:
    Path(key_store).write_bytes(base64.b64decode(KEY_STORE)[:200])
    with pytest.raises(InvalidConfigError, match="not a whole JKS file"):
        trusted_certificates_pem(key_store, "")


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"nothing\.jks"):
        trusted_certificates_pem(str(tmp_path / "nothing.jks"), "x")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="PKCS12 stores are opened by openssl")
def test_pkcs12_is_opened_by_openssl_and_left_to_librdkafka_for_keys(trust_store: str, tmp_path: Path) -> None:
    pem, store = tmp_path / "ca.pem", tmp_path / "ca.p12"
    pem.write_text(trusted_certificates_pem(trust_store, "secret1"))
    command = ["openssl", "pkcs12", "-export", "-nokeys", "-in", str(pem), "-out", str(store), "-passout", "pass:x"]
    subprocess.run(command, check=True, capture_output=True)
    assert "BEGIN CERTIFICATE" in trusted_certificates_pem(str(store), "x")
    assert private_key_pem(str(store), "x", "x") is None
    with pytest.raises(InvalidConfigError, match="openssl found no certificates"):
        trusted_certificates_pem(str(store), "wrong")
