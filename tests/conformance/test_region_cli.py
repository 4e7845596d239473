"""`fencepost test region://host:port` and what follows on it, with the bundled program on loopback."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fencepost.adapters.address import format_address
from fencepost.adapters.region.line_program import LineProgram
from fencepost.conformance.cli import main
from fencepost.conformance.testing.threads import enter_in_thread
from tests.support.faulty_regions import FAULTS

pytestmark = pytest.mark.slow


@pytest.fixture
def target() -> Iterator[str]:
    @asynccontextmanager
    async def serve() -> AsyncIterator[str]:
        program = LineProgram()
        try:
            yield format_address(*await program.start("127.0.0.1", 0))
        finally:
            await program.close()

    with enter_in_thread(serve) as address:
        yield f"region://{address}"


def test_a_run_over_loopback_is_judged_again_from_its_traces(target: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert main(["test", target, "--traces", str(tmp_path / "traces"), "--json", str(report), "--schedules", "5"]) == 0
    verdicts = {row["id"]: row["verdict"] for row in json.loads(report.read_text())["requirements"]}
    assert "fail" not in verdicts.values() and verdicts["REGION-33"] == "pass"
    traces = sorted(map(str, (tmp_path / "traces").iterdir()))
    assert main(["judge", *traces]) == 0


def test_a_fault_is_saved_and_replayed_until_it_is_fixed(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FAULTS["leave_out_seek_map"].activate():
        assert main(["test", target, "--only", "REGION-31", "--save", str(tmp_path)]) == 1
        (trace,) = tmp_path.iterdir()
        assert main(["replay", str(trace), target]) == 1
    assert main(["replay", str(trace), target]) == 0
    assert main(["report", str(trace)]) == 1
    assert "resets of 1 group" in capsys.readouterr().out


def test_the_bundled_operators_need_no_server() -> None:
    assert main(["test", "region://bundled", "--smoke"]) == 0


@pytest.mark.parametrize("address", ["region://nowhere", "region://127.0.0.1:1"])
def test_no_target(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", address]) == 2
    assert address in capsys.readouterr().err
