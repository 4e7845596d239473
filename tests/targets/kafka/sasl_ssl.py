"""Start and kill a single-node Apache Kafka 4.x on loopback that wants TLS, and SASL or a client's certificate.

    start              print HOST:PORT of the listener SASL_SSL, once the broker serves
    kill               kill it without warning; the next start has the same data, ports and certificates
    describe           print as JSON how clients connect: addresses, files, mechanisms and credentials
    profile HOW        print a profile for the kit; HOW is a mechanism of SASL, or "certificate" for the listener SSL
    token              print an unsecured token for OAUTHBEARER (RFC 7519, algorithm "none"), good for an hour

Listeners: SASL_SSL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER), SSL (a client certificate is required),
PLAINTEXT (for the broker itself and for comparison), and IPV6 (TLS and PLAIN), where the machine has an IPv6 loopback.
Everyone may do everything. The certificates are made at the first start, in `certificates` in the broker's folder.

Downloads go to $FENCEPOST_CACHE (default ~/.cache/fencepost), data to $FENCEPOST_RUN (default run/ in the cache).
"""

import argparse
import base64
import json
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.targets.kafka.broker import is_serving
from tests.targets.kafka.certificates import make_certificates
from tests.targets.kafka.installation import (
    START_TIMEOUT_S,
    VERSIONS,
    format_storage,
    install,
    kill_processes,
    launch_broker,
    render_properties,
)
from tests.targets.process import ProcessFolder, chosen_ports, print_address, run_folder

USER, PASSWORD = "fencepost", "not-a-secret"
PLAIN, SCRAM, OAUTHBEARER = "PLAIN", ("SCRAM-SHA-256", "SCRAM-SHA-512"), "OAUTHBEARER"
TOKEN_SECONDS = 3600
PORTS = 5
CERTIFICATE = "certificate"
TEMPLATE = "sasl-ssl.properties"
COMMAND = Path(__file__).with_name("sasl-ssl")
PASSWORD_FILE = "password"


def has_ipv6_loopback() -> bool:
    """Whether one can listen on ::1."""
    try:
        with socket.socket(socket.AF_INET6) as listener:
            listener.bind(("::1", 0))
    except OSError:
        return False
    return True


def start(folder: ProcessFolder) -> str:
    """Start the broker that lives in `folder`, unless it runs already, and return its SASL_SSL address."""
    home = install(VERSIONS["4"])
    make_certificates(folder.path / "certificates", USER)
    sasl_ssl, ssl, plain, controller, ipv6 = chosen_ports(folder.path, PORTS)
    values = {
        "ipv6_listener": f",IPV6://[::1]:{ipv6}" if has_ipv6_loopback() else "",
        "sasl_ssl_port": sasl_ssl,
        "ssl_port": ssl,
        "port": plain,
        "controller_port": controller,
        "certificates": folder.path / "certificates",
        "user": USER,
        "password": PASSWORD,
    }
    users = [f"--add-scram={mechanism}=[name={USER},password={PASSWORD}]" for mechanism in SCRAM]
    formatted = format_storage(home, "formatted-sasl-ssl", TEMPLATE, *users, **values)
    data = folder.path / "data"
    if not data.exists():
        shutil.copytree(formatted, data)
    process = launch_broker(home, folder, render_properties(TEMPLATE, log_dir=data, **values))
    folder.wait_until_serving(process, lambda: is_serving(plain), START_TIMEOUT_S)
    return f"127.0.0.1:{sasl_ssl}"


def describe(folder: Path) -> Mapping[str, Any]:
    """How clients connect to the broker in `folder`."""
    sasl_ssl, ssl, plain, _, ipv6 = chosen_ports(folder, PORTS)
    certificates = folder / "certificates"
    return {
        "sasl_ssl": f"127.0.0.1:{sasl_ssl}",
        "ssl": f"127.0.0.1:{ssl}",
        "plaintext": f"127.0.0.1:{plain}",
        "ipv6": f"[::1]:{ipv6}" if has_ipv6_loopback() else None,
        "ca_file": str(certificates / "ca.pem"),
        "client_certificate_file": str(certificates / "client.crt"),
        "client_key_file": str(certificates / "client.key"),
        "mechanisms": [PLAIN, *SCRAM, OAUTHBEARER],
        "user": USER,
        "password": PASSWORD,
    }


def make_profile(folder: Path, how: str) -> str:
    """A profile by which the kit connects to the broker in `folder`; the password is in a file there.

    The start command tells the address of SASL_SSL, so a profile with a certificate has none.
    """
    told = describe(folder)
    security = {"ca_file": told["ca_file"]}
    if how == CERTIFICATE:
        security |= {"certificate_file": told["client_certificate_file"], "key_file": told["client_key_file"]}
    elif how == OAUTHBEARER:
        security |= {"mechanism": how, "token_command": shlex.join([str(COMMAND), "token"])}
    else:
        (folder / PASSWORD_FILE).write_text(f"{PASSWORD}\n")
        security |= {"mechanism": how, "user": USER, "password_file": str(folder / PASSWORD_FILE)}
    commands = {name: shlex.join([str(COMMAND), name, "--data", str(folder)]) for name in ("start", "kill")}
    sections: Mapping[str, Mapping[str, object]] = {
        "target": {} if how == CERTIFICATE else commands,
        "capabilities": {"offers": ["retention", "transactions"]},
        "timing": {"grace_ms": 2000},
        "security": {"tls": True, **security},
    }
    # A value of TOML is written as JSON writes it.
    lines = [
        (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in rows.items()), "")
        for name, rows in sections.items()
    ]
    return "\n".join(line for section in lines for line in section)


def unsecured_token(now: int) -> str:
    """A token without a signature, issued at `now` (seconds since 1970)."""
    claims = {"sub": USER, "iat": now, "exp": now + TOKEN_SECONDS}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return "".join(base64.urlsafe_b64encode(part).decode().rstrip("=") + "." for part in parts)


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; 0 on success, 1 if the start failed, 2 if Java, Maven or openssl is missing."""
    parser = argparse.ArgumentParser(
        prog="sasl-ssl", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("action", choices=["start", "kill", "describe", "profile", "token"])
    parser.add_argument("how", nargs="?", choices=[PLAIN, *SCRAM, OAUTHBEARER, CERTIFICATE], help="for profile")
    parser.add_argument("--data", type=Path, help="the broker's folder (default: kafka-sasl-ssl in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    if (given.how is None) == (given.action == "profile"):
        parser.error(f"{given.action} {'needs' if given.how is None else 'takes no'} HOW")
    folder = ProcessFolder((given.data or run_folder() / "kafka-sasl-ssl").absolute())
    if given.action == "start":
        return print_address(lambda: start(folder))
    if given.action == "kill":
        kill_processes(folder.path)
    elif given.action == "describe":
        print(json.dumps(describe(folder.path), indent=2))
    elif given.action == "profile":
        print(make_profile(folder.path, given.how))
    else:
        print(unsecured_token(int(time.time())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
