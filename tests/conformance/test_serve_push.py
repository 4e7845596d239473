"""`fencepost serve --protocol push`: brokers of the push draft for anybody who speaks its messages."""

import asyncio
import socket
import sys

import pytest

from fencepost.adapters.address import TargetError
from fencepost.conformance.cli import main
from fencepost.conformance.push.serve import serve
from tests.support.push.consumer import PushConsumerProgram

PATIENCE_SECONDS = 30.0


@pytest.mark.real_time
async def test_a_consumer_gets_the_partitions_of_a_served_topic() -> None:
    announced: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve("127.0.0.1", 0, 2, {"t": 3}, announced.set_result))
    places = (await asyncio.wait_for(announced, PATIENCE_SECONDS)).split(",")
    assert len(places) == 2
    # The second broker is not the coordinator, and says who is.
    host, _, port = places[1].rpartition(":")
    consumer = PushConsumerProgram("g", "a", '{"t": 1}', [(host, int(port))])
    running = asyncio.create_task(consumer.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not consumer.fetched:
            await asyncio.sleep(0.005)
    assert consumer.fetched == {("t", "0-0"), ("t", "1-1"), ("t", "0-2")}
    running.cancel()
    serving.cancel()
    await asyncio.gather(running, serving, return_exceptions=True)


@pytest.mark.real_time
async def test_a_port_in_use_is_an_error_of_the_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(TargetError, match="in use"):
        await serve("127.0.0.1", other.getsockname()[1], 1, {}, print)


@pytest.mark.real_time
@pytest.mark.extra("kazoo")
async def test_a_zookeeper_that_is_not_there_is_an_error_of_the_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    with pytest.raises(TargetError, match=f"no ZooKeeper at 127.0.0.1:{free}: "):
        await serve("127.0.0.1", 0, 1, {}, print, ("127.0.0.1", free))


def test_without_what_speaks_to_a_zookeeper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    monkeypatch.delitem(sys.modules, "fencepost.adapters.push.network_zookeeper", raising=False)
    assert main(["serve", "--protocol", "push", "--zookeeper", "h:1"]) == 2
    told = "a real ZooKeeper needs kazoo: pip install 'fencepost[zookeeper]'"
    assert capsys.readouterr().err.strip() == f"fencepost: {told}"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--protocol", "push", "--dialect", "proposal"], "fencepost serve: --dialect says nothing about push"),
        (["--protocol", "push", "--storage", "d"], "fencepost serve: --storage says nothing about push"),
        (["--zookeeper", "h:1"], "fencepost serve: --zookeeper says nothing about classic"),
        (["--protocol", "region", "--zookeeper", "h:1"], "fencepost serve: --zookeeper says nothing about region"),
        (["--topic", "t=3"], "fencepost serve: --topic says nothing about classic"),
        (
            ["--protocol", "push", "--topic", "t"],
            "fencepost serve: argument --topic: 't' is not NAME=N, such as orders=6",
        ),
        (["--protocol", "push", "--topic", "t=0"], "fencepost serve: argument --topic: '0' is not a number above 0"),
    ],
)
def test_what_cannot_be_served(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *words]) == 2
    assert capsys.readouterr().err == f"{line} (see fencepost serve --help)\n"
