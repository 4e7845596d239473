"""The SASL mechanisms as message exchanges, by the examples of their RFCs."""

import base64
import hashlib
import hmac

import pytest

from fencepost.adapters.security.authentication import Requests, SaslSession, authentication_requests
from fencepost.adapters.security.settings import (
    MAX_ITERATIONS,
    SaslError,
    SaslSteps,
    ScramKeys,
    Secret,
    oauth_bearer_steps,
    plain_steps,
    scram_steps,
)
from fencepost.model.wire.codec import Body

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""The exchange of RFC 7677, section 3."""


def rfc_steps() -> SaslSteps:
    return scram_steps("user", ScramKeys("sha256", Secret("pencil")), NONCE)


def test_the_example_of_rfc_7677() -> None:
    steps = rfc_steps()
    assert next(steps) == f"n,,n=user,r={NONCE}".encode()
    assert steps.send(SERVER_FIRST.encode()) == f"c=biws,{SERVER_FIRST.split(',')[0]},{PROOF}".encode()
    with pytest.raises(StopIteration):
        steps.send(SIGNATURE.encode())


def test_the_example_of_rfc_5802() -> None:
    """Its hash is SHA-1, which no broker offers; the messages are the same."""
    steps = scram_steps("user", ScramKeys("sha1", Secret("pencil")), "fyko+d2lbbFgONRv9qkxdawL")
    assert next(steps) == b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    nonce = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    assert steps.send(nonce + b",s=QSXCR+Q6sek8bf92,i=4096") == b"c=biws," + nonce + b",p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    with pytest.raises(StopIteration):
        steps.send(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")


def test_scram_with_sha_512_and_a_name_to_escape() -> None:
    """The broker's side, worked out here from RFC 5802."""
    password, salt = "pass=wörd,", b"salt"
    steps = scram_steps("a=b,c", ScramKeys("sha512", Secret(password)), "nonce")
    assert next(steps) == b"n,,n=a=3Db=2Cc,r=nonce"
    first = "r=nonce+1,s=c2FsdA==,i=5000"
    final = steps.send(first.encode()).decode()
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 5000)
    signed = f"n=a=3Db=2Cc,r=nonce,{first},c=biws,r=nonce+1".encode()
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    signature = hmac.digest(hashlib.sha512(client_key).digest(), signed, "sha512")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    assert final == f"c=biws,r=nonce+1,p={proof}"
    server_key = hmac.digest(salted, b"Server Key", "sha512")
    with pytest.raises(StopIteration):
        steps.send(b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha512")))


@pytest.mark.parametrize(
    ("server_first", "complaint"),
    [
        (SERVER_FIRST.replace("r=r", "r=R"), "its nonce does not continue the kit's"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "its nonce does not continue the kit's"),
        (SERVER_FIRST.replace("4096", "4095"), "it asks for 4095 iterations"),
        (SERVER_FIRST.replace("4096", "1"), "it asks for 1 iterations"),
        (SERVER_FIRST.replace("4096", str(MAX_ITERATIONS + 1)), f"it asks for {MAX_ITERATIONS + 1} iterations"),
        (SERVER_FIRST.replace("4096", "9" * 5000), "it asks for 999999999 iterations"),
        (SERVER_FIRST.replace("4096", "-4096"), "its first message is not one of SCRAM"),
        (f"m=x,{SERVER_FIRST}", "its first message is not one of SCRAM"),
        (SERVER_FIRST.replace("s=W22", "s=?"), "its message lacks a part or is not base64"),
        (SERVER_FIRST.replace(",s=", ",t="), "its message lacks a part or is not base64"),
        ("", "its first message is not one of SCRAM"),
    ],
)
def test_a_first_message_that_scram_forbids(server_first: str, complaint: str) -> None:
    steps = rfc_steps()
    next(steps)
    with pytest.raises(SaslError, match="does not keep to SCRAM: ") as caught:
        steps.send(server_first.encode())
    assert complaint in caught.value.reason


@pytest.mark.parametrize(
    ("server_final", "complaint"),
    [
        (SIGNATURE.replace("6r", "7r"), "its signature is wrong, so it does not know the password"),
        ("", "its message lacks a part or is not base64"),
        ("e=invalid-proof", "the broker refuses the user or the password"),
        ("v=é", "its message lacks a part or is not base64"),
    ],
)
def test_a_broker_that_does_not_prove_itself(server_final: str, complaint: str) -> None:
    steps = rfc_steps()
    next(steps)
    steps.send(SERVER_FIRST.encode())
    with pytest.raises(SaslError) as caught:
        steps.send(server_final.encode())
    assert complaint in caught.value.reason


def test_bytes_that_are_no_text() -> None:
    steps = rfc_steps()
    next(steps)
    with pytest.raises(SaslError, match="its message is not UTF-8"):
        steps.send(b"\xff")


def test_plain_is_one_message() -> None:
    steps = plain_steps("tim", Secret("tanstaaftanstaaf"))
    assert next(steps) == b"\0tim\0tanstaaftanstaaf"
    with pytest.raises(StopIteration):
        steps.send(b"")


def test_a_bearer_token_and_its_refusal() -> None:
    steps = oauth_bearer_steps(Secret("abc.def"))
    assert next(steps) == b"n,,\1auth=Bearer abc.def\1\1"
    assert steps.send(b'{"status":"invalid_token"}') == b"\1"
    with pytest.raises(SaslError, match="refuses the token and accepts the connection"):
        steps.send(b"")


# --- the requests that carry them

OFFER = {"api_keys": [{"api_key": 17, "max_version": 1}, {"api_key": 36, "min_version": 0, "max_version": 7}]}


def requests_of_plain(version: int | None = None) -> Requests:
    return authentication_requests("PLAIN", plain_steps("me", Secret("x")), version=version)


def test_an_authentication_asks_for_versions_first() -> None:
    requests = requests_of_plain()
    assert next(requests) == ("ApiVersions", 0, {})
    assert requests.send(OFFER) == ("SaslHandshake", 1, {"mechanism": "PLAIN"})
    assert requests.send({"error_code": 0}) == ("SaslAuthenticate", 2, {"auth_bytes": b"\0me\0x"})
    with pytest.raises(StopIteration) as end:
        requests.send({"error_code": 0, "auth_bytes": b"", "session_lifetime_ms": 1000})
    assert end.value.value == SaslSession(1000, 2)
    assert end.value.value.renew_after_s == 0.85
    assert SaslSession().renew_after_s == float("inf")


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ([{"api_keys": [{"api_key": 18}]}], "the broker offers no SASL"),
        ([OFFER, {"error_code": 33, "mechanisms": ["A", "B"]}], "the broker does not offer PLAIN; it offers A, B: set"),
        ([OFFER, {"error_code": 33}], "the broker does not offer PLAIN; it offers none: set"),
        ([OFFER, {"error_code": 34}], "this port wants no SASL"),
        ([OFFER, {"error_code": 35}], "the broker answers SaslHandshake with error 35"),
        ([OFFER, {}], "the broker answers SaslHandshake with error None"),
        ([OFFER, {"error_code": 0}, {"error_code": 58, "error_message": "no\nway"}], "authentication failed: no way;"),
        ([OFFER, {"error_code": 0}, {}], "PLAIN authentication failed: error None"),
    ],
)
def test_a_broker_that_lets_nobody_in(answers: list[Body], complaint: str) -> None:
    requests = requests_of_plain()
    next(requests)
    with pytest.raises(SaslError) as caught:
        for answer in answers:
            requests.send(answer)
    assert complaint in f"{caught.value.reason}; {caught.value.advice}"


def test_a_secret_is_shown_nowhere() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    assert secret.hide_in("wrong: hunter2!") == "wrong: <hidden>!"
    assert Secret("").hide_in("text") == "text"
