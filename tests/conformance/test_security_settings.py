"""What a profile may say of TLS and SASL, and what commands show of its secrets."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.adapters.address import format_address
from fencepost.adapters.security.authentication import load_security
from fencepost.adapters.security.settings import SecurityError
from fencepost.conformance.cli import main
from fencepost.conformance.profile import ProfileError, load_profile
from fencepost.conformance.testing.threads import enter_in_thread
from tests.support.guarded_server import CERTIFICATES, Door, guarded_server
from tests.support.security_profiles import KIT, PASSWORD, SECRET, TOKEN, TRUST, USERS, set_passwords, write_profile

pytestmark = pytest.mark.real_time

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    set_passwords(monkeypatch)


# --- profiles


@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        (
            f"password = '{SECRET}'",
            "password: secrets are not written into a profile; name an environment",
        ),
        ("token = 'x'", "token: secrets are not written into a profile; name a command that prints it: token_command"),
        ("ca = 'x'", "ca: unknown key; the keys are tls, ca_file"),
        ("tls = 1", "tls: neither true nor false"),
        ("ca_file = ''", "ca_file: not a text; write it in quotes, not empty"),
        ("user = 'x'", "user: no mechanism; give one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ("mechanism = 'GSSAPI'", "mechanism: 'GSSAPI' is unknown; the choices are PLAIN, "),
        ("mechanism = 'PLAIN'", "mechanism: PLAIN needs user and password_env or password_file"),
        ("mechanism = 'OAUTHBEARER'", "mechanism: OAUTHBEARER needs token_command"),
        ("mechanism = 'OAUTHBEARER'\ntoken_command = 'x'\nuser = 'u'", "user: not for OAUTHBEARER; leave it out"),
        ("mechanism = 'PLAIN'\ntoken_command = 'x'\n" + PASSWORD, "token_command: not for PLAIN; leave it out"),
        (
            "mechanism = 'PLAIN'\npassword_file = 'x'\n" + PASSWORD,
            "password_env: there is password_file too",
        ),
        ("mechanism = 'OAUTHBEARER'\ntoken_command = '\"'", "token_command: not a command: No closing quotation"),
        ("key_file = 'x'", "key_file: a key without a certificate; give certificate_file too"),
        ("key_password_env = 'x'", "key_password_env: there is no key; give certificate_file too"),
    ],
)
def test_what_is_wrong_in_a_profile(security: str, complaint: str, tmp_path: Path) -> None:
    path = write_profile(tmp_path, security)
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert str(caught.value).startswith(f"{path}: [security] {complaint}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        ("ca_file = 'no.pem'", "ca_file: FOLDER/no.pem: No such file or directory"),
        ("ca_file = 'profile.toml'", "ca_file: FOLDER/profile.toml: holds no certificate in PEM form"),
        ("certificate_file = 'no.pem'", "certificate_file: FOLDER/no.pem: no such file"),
        (
            KIT.replace("kit.key", "broker.key"),
            "certificate_file: CERTIFICATES/kit.pem: the key does not belong to",
        ),
        (
            KIT.replace("kit.key", "kit.pem"),
            "certificate_file: CERTIFICATES/kit.pem: no certificate and key",
        ),
        (KIT.replace("kit.key", "kit-encrypted.key"), "key_file: the key has a password; give key_password_env"),
        (
            KIT.replace("kit.key", "kit-encrypted.key") + "key_password_env = 'WRONG_PASSWORD'",
            "certificate_file: CERTIFICATES/kit.pem: the password of the key is wrong, or",
        ),
        (
            "mechanism = 'PLAIN'\nuser = 'u'\npassword_env = 'swordfish'",
            "password_env: there is no such environment variable, or it is empty; export it",
        ),
        (
            "mechanism = 'PLAIN'\nuser = 'u'\npassword_file = 'secret'",
            "password_file: FOLDER/secret: No such file or directory",
        ),
    ],
)
def test_what_is_missing_beside_a_profile(security: str, complaint: str, tmp_path: Path) -> None:
    settings = load_profile(write_profile(tmp_path, security)).security
    with pytest.raises(SecurityError) as caught:
        load_security(settings, wants_tls=True)
    told = str(caught.value).replace(str(tmp_path), "FOLDER").replace(str(CERTIFICATES), "CERTIFICATES")
    assert told.startswith(f"[security] {complaint}")
    assert "swordfish" not in told


def test_keys_of_tls_without_tls(tmp_path: Path) -> None:
    settings = load_profile(write_profile(tmp_path, TRUST)).security
    with pytest.raises(SecurityError, match="keys of TLS, but no TLS; write tls = true, or"):
        load_security(settings)


# --- commands


@contextmanager
def guarded_in_thread(door: Door) -> Iterator[str]:
    """Serves in a thread; gives host and port."""
    with enter_in_thread(lambda: guarded_server(door)) as place:
        yield format_address(*place)


def shown_secrets(folder: Path, capture: Capture, *kept: Path) -> list[str]:
    """Where a secret is to be read: in what was printed, or in a file that was written."""
    output = capture.readouterr()
    texts = {"stdout": output.out.encode(), "stderr": output.err.encode()}
    texts |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path not in kept}
    forms = [secret.encode() for secret in (SECRET, "swordfish", TOKEN)]
    forms += [json.dumps(SECRET).strip('"').encode()]
    return [place for place, data in texts.items() if any(form in data for form in forms)]


@pytest.mark.slow
def test_commands_reach_a_guarded_broker_and_show_no_secret(tmp_path: Path, capsys: Capture) -> None:
    password_file = tmp_path / "password"
    password_file.write_text(f"{SECRET}\n", encoding="utf-8")
    profile = write_profile(
        tmp_path, TRUST + "mechanism = 'SCRAM-SHA-512'\nuser = 'kit,='\npassword_file = 'password'\n"
    )
    door = Door("broker", mechanisms=("PLAIN", "SCRAM-SHA-512"), users=USERS, lifetime_ms=500)
    with guarded_in_thread(door) as host:
        url, out = f"kafka+ssl://{host}", tmp_path / "out"
        options = ["--profile", str(profile), "--only", "HB-05", "--smoke"]
        reports = ["--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml"), "--traces", str(out)]
        assert main(["test", url, *options, *reports]) == 0
        assert json.loads((tmp_path / "r.json").read_text())["target"]["name"] == url
        traces = sorted(out.glob("*.jsonl*"))
        assert traces
        assert main(["replay", str(traces[0]), url, "--profile", str(profile)]) == 3
        assert shown_secrets(tmp_path, capsys, password_file) == []
        assert shown_secrets(tmp_path, capsys) == [str(password_file)]  # the search finds what is there


def test_a_refused_secret_is_not_shown(tmp_path: Path, capsys: Capture) -> None:
    door = Door(mechanisms=("PLAIN",), users=USERS)
    profile = write_profile(tmp_path, "mechanism = 'PLAIN'\n" + PASSWORD.replace("DOOR", "WRONG"))
    with guarded_in_thread(door) as host:
        assert main(["test", host, "--profile", str(profile), "--traces", str(tmp_path / "t")]) == 2
        assert main(["record", "--upstream", host, "--profile", str(profile), "-o", str(tmp_path / "t.jsonl")]) == 2
    assert door.attempts == ["PLAIN", "PLAIN"]
    assert shown_secrets(tmp_path, capsys) == []


@pytest.mark.parametrize(
    "words",
    [
        ["test", f"kafka://me:{SECRET}@host:1"],
        ["replay", "trace.jsonl", f"me:{SECRET}@host:1"],
        ["record", "--upstream", f"kafka+ssl://me:{SECRET}@host:1", "-o", "x.jsonl"],
        ["record", "--upstream", "host:1", "--listen", f"me:{SECRET}@host:1", "-o", "x.jsonl"],
    ],
)
def test_an_address_with_a_password_is_refused_without_repeating_it(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "an address holds no user and no password" in line and "password_env" in line
    assert SECRET not in line and "me:" not in line
