"""The protocol of drivers: commands and messages in pipes, and drivers that break it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.client.cluster import ScriptedCluster, start_cluster
from fencepost.adapters.client.program import Application, ClientPlace, DrivenProgram, DriverError, decode_message
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.results import ExitCode, Verdict
from fencepost.model.settings import Settings
from fencepost.traces.events import Kind

FAKE = Path(__file__).parents[2] / "support" / "fake_driver.py"
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "clients"


@pytest.mark.parametrize("line", [b"garbage", b"[1]", b'{"done"'])
def test_a_line_that_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(DriverError, match="no JSON object"):
        decode_message(line)


@pytest.mark.parametrize(
    "message",
    [{"done": 7}, {"event": "moved", "partitions": []}, {"records": 1}, {"error": "x"}, {"event": "lost"}, {}],
)
async def test_an_unknown_message_is_refused(message: dict[str, Any]) -> None:
    application = Application(ScriptedCluster(Settings()), lambda command: None)
    with pytest.raises(DriverError, match="unknown message"):
        application.receive(message)


async def test_commands_come_one_at_a_time() -> None:
    sent: list[Any] = []
    application = Application(ScriptedCluster(Settings()), sent.append)
    first, second = (asyncio.ensure_future(application.do("poll", ms=1)) for _ in range(2))
    await asyncio.sleep(0)
    assert sent == [{"id": 1, "do": "poll", "ms": 1}]
    application.receive({"done": 1})
    await first
    await asyncio.sleep(0)
    assert [command["id"] for command in sent] == [1, 2]
    application.receive({"error": "no", "of": 2})
    assert (await second)["error"] == "no"


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ('{"done": ID}', ""),
        ("hello", "the driver wrote no JSON object: 'hello'"),
        ('{"done": 99}', 'the driver wrote an unknown message: {"done": 99}'),
    ],
)
async def test_a_driver_talks_through_pipes(says: str, problem: str) -> None:
    cluster = await start_cluster(Settings())
    running = await DrivenProgram([sys.executable, str(FAKE), says]).start(ClientPlace("h:1", "g", "t"), cluster)
    running.ask_to_end()
    async with asyncio.timeout(20):
        code = await running.wait()
    running.read_messages()
    assert running.last_words() == problem and (code == 0) is not bool(problem)
    seen = [event.body["do"] for event in cluster.events if event.kind is Kind.INTERNAL and event.api == "command"]
    assert seen == (["subscribe"] if problem else ["subscribe", "close"])
    await running.kill()
    await cluster.brokers.close()


def test_a_driver_that_breaks_its_protocol_cannot_be_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["test-client", "--driven", "--startup-seconds", "10", "--", sys.executable, str(FAKE), "hello"]
    assert main(options) == ExitCode.COULD_NOT_RUN
    assert "the driver wrote no JSON object" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka_python"])
@pytest.mark.extra("kafka")
def test_an_example_drives_its_client(name: str, tmp_path: Path) -> None:
    file, driver = tmp_path / "r.json", EXAMPLES / f"{name}_driver.py"
    options = ["test-client", "--driven", "-q", "--at-once", "2", "--json", str(file), "--only", "CALLBACK-0[1-3]"]
    main([*options, "POLL-03", "--", sys.executable, str(driver)])
    report = from_json(file.read_text())
    assert report.failed_results() == ()
    assert {report.result(id).verdict for id in ("CALLBACK-01", "CALLBACK-03", "POLL-03")} == {Verdict.PASS}
    assert json.loads(file.read_text())["subject"] == "client"
