"""The broker behind TLS and SASL is reached with the certificates and the credentials that it tells, and no others."""

import json
import socket
import ssl
import struct
from typing import Any

import pytest

from tests.targets.running import RunningTarget

pytestmark = pytest.mark.kafka_sasl_ssl

COMMAND = "kafka/sasl-ssl"
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
SASL_AUTHENTICATION_FAILED = 58
TIMEOUT_S = 20
FAR_FUTURE_S = 2.0**33


def describe(target: RunningTarget) -> dict[str, Any]:
    """How clients connect to the broker."""
    told: dict[str, Any] = json.loads(target.run(COMMAND, "describe"))
    return told


def connect(address: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A TLS connection to "host:port". Raises ssl.SSLError."""
    host, _, port = address.rpartition(":")
    return context.wrap_socket(socket.create_connection((host, int(port)), TIMEOUT_S), server_hostname=host)


def ask(connection: ssl.SSLSocket, api: int, version: int, body: bytes) -> bytes:
    """Send one request and return the body of its response."""
    frame = struct.pack(">hhih", api, version, 1, -1) + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    with connection.makefile("rb") as response:
        return response.read(struct.unpack(">i", response.read(4))[0])[4:]


def plain_error(target: RunningTarget, password: str) -> int:
    """SaslAuthenticate's error code for the user and this password, by PLAIN."""
    told = describe(target)
    token = f"\0{told['user']}\0{password}".encode()
    with connect(told["sasl_ssl"], ssl.create_default_context(cafile=told["ca_file"])) as connection:
        assert ask(connection, SASL_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN").startswith(b"\0\0")
        answer = ask(connection, SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
    error: int = struct.unpack_from(">h", answer)[0]
    return error


def test_the_certificate_is_valid_for_who_trusts_the_ca(kafka_sasl_ssl: RunningTarget) -> None:
    told = describe(kafka_sasl_ssl)
    assert told["sasl_ssl"] == kafka_sasl_ssl.bootstrap
    context = ssl.create_default_context(cafile=told["ca_file"])
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with connect(told["sasl_ssl"], context) as connection:
        assert connection.version() in ("TLSv1.2", "TLSv1.3")


def test_nobody_else_trusts_the_certificate(kafka_sasl_ssl: RunningTarget) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(kafka_sasl_ssl.bootstrap, ssl.create_default_context())


def test_a_password_is_right_or_wrong(kafka_sasl_ssl: RunningTarget) -> None:
    assert plain_error(kafka_sasl_ssl, describe(kafka_sasl_ssl)["password"]) == 0
    assert plain_error(kafka_sasl_ssl, "another") == SASL_AUTHENTICATION_FAILED


@pytest.mark.extra("confluent_kafka")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_client_authenticates(kafka_sasl_ssl: RunningTarget, mechanism: str) -> None:
    from confluent_kafka.admin import AdminClient

    told, token = describe(kafka_sasl_ssl), kafka_sasl_ssl.run(COMMAND, "token")
    config: dict[str, Any] = {
        "bootstrap.servers": told["sasl_ssl"],
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": told["ca_file"],
        "sasl.mechanism": mechanism,
        "sasl.username": told["user"],
        "sasl.password": told["password"],
    }
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda options: (token, FAR_FUTURE_S)
    client = AdminClient(config)
    client.poll(0)  # fetches the token
    assert mechanism in told["mechanisms"] and client.list_topics(timeout=TIMEOUT_S).brokers


def test_a_client_with_a_certificate_needs_no_password(kafka_sasl_ssl: RunningTarget) -> None:
    told = describe(kafka_sasl_ssl)
    context = ssl.create_default_context(cafile=told["ca_file"])
    with pytest.raises((ssl.SSLError, ConnectionError, struct.error)), connect(told["ssl"], context) as connection:
        ask(connection, SASL_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN")
    context.load_cert_chain(told["client_certificate_file"], told["client_key_file"])
    with connect(told["ssl"], context) as connection:
        assert ask(connection, 18, 0, b"").startswith(b"\0\0")
