"""What a satellite is started with: who may reach it, by which names, and how others are reached."""

import ssl
from pathlib import Path

import pytest
import trustme

from ottla.satellite.settings import HttpSettings, UnusableSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_guard(host: str) -> None:
    HttpSettings(host=host).check()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_other_machines_are_let_in_by_a_guard_or_on_purpose(host: str) -> None:
    with pytest.raises(UnusableSettings, match="is not a loopback address"):
        HttpSettings(host=host).check()
    HttpSettings(host=host, is_insecure=True).check()
    HttpSettings(host=host, users_file=Path("users")).check()
    HttpSettings(host=host, certificate=Path("c"), client_ca=Path("ca")).check()


def test_certificates_of_clients_need_one_of_the_server() -> None:
    with pytest.raises(UnusableSettings, match="--tls-client-ca needs --tls-certificate"):
        HttpSettings(client_ca=Path("ca")).check()


def test_nothing_is_given_away_by_default() -> None:
    settings = HttpSettings()
    assert not settings.trusts_group
    assert not settings.is_insecure
    assert settings.tls() is None
    assert settings.names == {"localhost", "127.0.0.1"}


def test_urls_name_the_scheme_and_put_addresses_of_version_6_in_brackets() -> None:
    assert HttpSettings().url(80) == "http://127.0.0.1:80"
    settings = HttpSettings(host="::1", advertised_host="Node.example.", certificate=Path("c"))
    assert settings.url(80) == "https://[::1]:80"
    assert settings.url_for_others(80) == "https://Node.example.:80"
    assert settings.names == {"localhost", "::1", "node.example"}
    assert HttpSettings(allowed_hosts=("Proxy.",)).names == {"localhost", "127.0.0.1", "proxy"}


@pytest.fixture
def files(tmp_path: Path) -> HttpSettings:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    return HttpSettings(
        certificate=tmp_path / "own.pem", client_ca=tmp_path / "ca.pem", ca=tmp_path / "ca.pem"
    )


def test_tls_is_of_version_1_2_at_least_and_knows_the_given_authorities(files: HttpSettings) -> None:
    server, to_others = files.tls(), files.tls_to_others()
    assert server is not None
    for context in (server, to_others):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert any("trustme" in str(found["subject"]) for found in context.get_ca_certs())
    assert server.verify_mode is ssl.CERT_REQUIRED
    assert to_others.verify_mode is ssl.CERT_REQUIRED
    assert to_others.check_hostname
    without = HttpSettings(certificate=files.certificate).tls()
    assert without is not None
    assert without.verify_mode is ssl.CERT_NONE
    assert HttpSettings().tls_to_others().minimum_version is ssl.TLSVersion.TLSv1_2


def test_files_that_cannot_be_used_are_told(files: HttpSettings, tmp_path: Path) -> None:
    missing = HttpSettings(certificate=tmp_path / "none.pem")
    for make in (missing.tls, missing.tls_to_others, HttpSettings(ca=tmp_path / "none.pem").tls_to_others):
        with pytest.raises(UnusableSettings, match="the files for TLS cannot be used"):
            make()
