"""The kit on Apache Kafka behind TLS and SASL: each way in, and outputs without secrets."""

import json
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from tests.targets.running import RunningTarget

pytestmark = pytest.mark.kafka_sasl_ssl

Capture = pytest.CaptureFixture[str]
COMMAND = "kafka/sasl-ssl"
WAYS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "certificate")
NOBODY = "127.0.0.1:1"


def write_profile(target: RunningTarget, folder: Path, how: str) -> Path:
    """A profile for this way in, and its path."""
    path = folder / "profile.toml"
    path.write_text(target.run(COMMAND, "profile", how))
    return path


def address_of(target: RunningTarget, how: str) -> str:
    """The address of the listener for this way in."""
    told = json.loads(target.run(COMMAND, "describe"))
    address: str = told["ssl" if how == "certificate" else "sasl_ssl"]
    return address


def verdict_on(report: Path, requirement: str) -> str:
    """The verdict on a requirement in a report."""
    rows = {row["id"]: row["verdict"] for row in json.loads(report.read_text())["requirements"]}
    return str(rows[requirement])


@pytest.mark.parametrize("how", WAYS)
def test_each_way_in(how: str, kafka_sasl_ssl: RunningTarget, tmp_path: Path, capsys: Capture) -> None:
    profile, report, traces = write_profile(kafka_sasl_ssl, tmp_path, how), tmp_path / "r.json", tmp_path / "traces"
    url = f"kafka+ssl://{NOBODY},{address_of(kafka_sasl_ssl, how)}"
    options = ["--profile", str(profile), "--json", str(report), "--traces", str(traces)]
    assert main(["test", url, "--only", "HB-05", "--smoke", *options]) == 0
    assert verdict_on(report, "HB-05") == "pass"
    output = capsys.readouterr()
    shown = [output.out, output.err, report.read_text(), *(path.read_text() for path in traces.iterdir())]
    secrets = [json.loads(kafka_sasl_ssl.run(COMMAND, "describe"))["password"], "eyJhbGciOiAibm9uZSJ9"]
    assert kafka_sasl_ssl.run(COMMAND, "token").startswith(secrets[1])
    assert [secret for secret in secrets if any(secret in text for text in shown)] == []


def test_ipv6(kafka_sasl_ssl: RunningTarget, tmp_path: Path) -> None:
    address = json.loads(kafka_sasl_ssl.run(COMMAND, "describe"))["ipv6"]
    if address is None:
        pytest.skip("this machine has no IPv6 loopback")
    profile, report = write_profile(kafka_sasl_ssl, tmp_path, "PLAIN"), tmp_path / "r.json"
    options = ["--profile", str(profile), "--json", str(report), "--only", "HB-05", "--smoke"]
    assert main(["test", f"kafka+ssl://{address}", *options]) == 0
    assert json.loads(report.read_text())["target"]["name"] == f"kafka+ssl://{address}"
    assert verdict_on(report, "HB-05") == "pass"


def test_a_restart(kafka_sasl_ssl: RunningTarget, tmp_path: Path) -> None:
    profile, report = write_profile(kafka_sasl_ssl, tmp_path, "PLAIN"), tmp_path / "r.json"
    options = ["--profile", str(profile), "--json", str(report)]
    assert main(["test", address_of(kafka_sasl_ssl, "PLAIN"), "--only", "FAILOVER-15", *options]) == 0
    assert verdict_on(report, "FAILOVER-15") == "pass"


def test_a_wrong_password_is_refused_in_one_line(
    kafka_sasl_ssl: RunningTarget, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG_PASSWORD", "swordfish")
    lines = write_profile(kafka_sasl_ssl, tmp_path, "SCRAM-SHA-256").read_text().splitlines()
    wrong = ['password_env = "WRONG_PASSWORD"' if line.startswith("password_file") else line for line in lines]
    profile = tmp_path / "wrong.toml"
    profile.write_text("\n".join(wrong))
    url = f"kafka+ssl://{address_of(kafka_sasl_ssl, 'SCRAM-SHA-256')}"
    assert main(["test", url, "--profile", str(profile)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "SCRAM-SHA-256" in line and "swordfish" not in line
