"""The client that the kit brings along: it is tested without a command, and is blamed for nothing."""

from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.plan import BUNDLED


def test_whoever_has_no_client_at_hand_can_test_the_bundled_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-client", BUNDLED, "-q", "--only", "MEMBER-1*", "CALLBACK-0*", "--schedules", "10"]) == 0
    assert "none violated" in capsys.readouterr().out


def test_a_trace_of_it_can_be_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-client", BUNDLED, "-q", "--only", "MEMBER-12", "--traces", str(tmp_path)]) == 0
    trace = sorted(tmp_path.iterdir())[0]
    assert main(["replay", str(trace), "--", BUNDLED]) == 3
    assert "nothing failed this time either" in capsys.readouterr().out
