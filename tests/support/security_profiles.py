"""Sections [security] of profiles for the guarded server, with its secrets."""

from pathlib import Path

import pytest

from tests.support.guarded_server import CERTIFICATES

SECRET = "open,sesame=äß"
TOKEN = "eyJhbGciOiJub25lIn0.e30."
USERS = {"kit,=": SECRET}
PASSWORD = "user = 'kit,='\npassword_env = 'DOOR_PASSWORD'\n"
TRUST = f"ca_file = '{CERTIFICATES}/authority.pem'\n"
KIT = f"certificate_file = '{CERTIFICATES}/kit.pem'\nkey_file = '{CERTIFICATES}/kit.key'\n"


def set_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment variables that the sections name."""
    monkeypatch.setenv("DOOR_PASSWORD", SECRET)
    monkeypatch.setenv("WRONG_PASSWORD", "swordfish")


def write_profile(folder: Path, security: str) -> Path:
    """Write a profile with this section, and return its path."""
    path = folder / "profile.toml"
    path.write_text(f"[security]\n{security}", encoding="utf-8")
    return path
