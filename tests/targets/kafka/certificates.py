"""Certificates for tests: a CA, a server on loopback and a client, made by openssl."""

import shutil
from pathlib import Path

from tests.targets.kafka.installation import run_quietly
from tests.targets.process import MissingDependencyError

DAYS = 365
CONFIG = """
[req]
distinguished_name = name
prompt = no
[name]
CN = COMMON_NAME
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyEncipherment
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, IP:::1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
"""The extensions that strict verifiers ask for."""


def make_certificates(folder: Path, client: str) -> None:
    """Put ca.pem, server.pem and client.pem (key and certificate in one) into `folder`, unless they are there.

    `client` is the name in the client's certificate. Raises MissingDependencyError without openssl, and StartError.
    """
    if folder.exists():
        return
    if shutil.which("openssl") is None:
        raise MissingDependencyError("openssl: not found; install OpenSSL 3, which makes the certificates")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    _issue(part, "ca", "Fencepost test CA")
    _issue(part, "server", "localhost")
    _issue(part, "client", client)
    part.rename(folder)


def _issue(folder: Path, role: str, common_name: str) -> None:
    key, certificate, config = folder / f"{role}.key", folder / f"{role}.crt", folder / "openssl.cnf"
    config.write_text(CONFIG.replace("COMMON_NAME", common_name))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(DAYS), "-config", str(config)]
    issuer = [] if role == "ca" else ["-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key")]
    run_quietly([*command, "-extensions", role, *issuer, "-keyout", str(key), "-out", str(certificate)])
    secret = "" if role == "ca" else key.read_text()
    (folder / f"{role}.pem").write_text(secret + certificate.read_text())
