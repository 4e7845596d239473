"""How long many consumers of one push coordinator take to settle, and to settle again after one died.

Run with `python -m tests.benchmarks.push_consumers --consumers 5000`, the number that the draft names as its goal.
Broker and consumers are the bundled programs, in one process on one core, each consumer with a socket of its own on
loopback: the seconds and the memory are those of both ends. With `--groups N` the consumers are spread over N groups of
that coordinator. A group is stable when each consumer fetches, each partition is fetched by exactly one, and the
recorded owners say so.

Measured once each on two cores with no other work, one group with a session timeout of 30 s: 2,000 consumers that all
start at the same moment are stable after 3.0 s, and 30.7 s after a death (62 MiB); 5,000 after 14.3 s, nearly all of it
the waits of connections that the machine dropped, and 32.9 s after a death (118 MiB). Most of the second time is the
session timeout, within which the dead consumer may still fetch. Before the brokers let more than 100 connections wait
to be accepted, 500 took 7.5 s, and 2,000 13.7 s.
"""

import argparse
import asyncio
import resource
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.adapters.push.broker import BrokerSettings, PushBroker
from fencepost.adapters.push.consumer import PushConsumerProgram
from fencepost.adapters.push.zookeeper import MemoryZookeeper

TOPIC = "t"
LOOK_SECONDS = 0.05
WAVE, WAVE_SECONDS = 500, 0.05
"""So many consumers start at once, and then none for a while: a machine lets only so many connections wait
(4,096 is usual), and has the others try again after 1, 3, 7 and 15 s, which would be all that is measured."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured: seconds, and the most resident memory of the process in MiB."""

    seconds_to_stable: float
    seconds_after_death: float
    registrations: int
    memory_mib: float


@dataclass(slots=True)
class Crowd:
    """One coordinator and its consumers, by group; each group has a partition for each consumer at the start."""

    zookeeper: MemoryZookeeper
    broker: PushBroker
    groups: dict[str, list[PushConsumerProgram]]
    patience: float

    def is_stable(self, group: str) -> bool:
        """Whether each consumer fetches, and each partition has one consumer, which the recorded owners name."""
        if not all(one.fetched for one in self.groups[group]):
            return False
        fetched = [(part, one.consumer) for one in self.groups[group] for part in one.fetched]
        owners = self.zookeeper.owners.get(group, {})
        return len(fetched) == len(self.zookeeper.topics[TOPIC]) and dict(fetched) == owners

    async def await_stability(self) -> float:
        """The seconds until all groups are stable. Raises `TimeoutError` when patience ends."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        open_groups = list(self.groups)
        async with asyncio.timeout(self.patience):
            while open_groups := [group for group in open_groups if not self.is_stable(group)]:
                await asyncio.sleep(LOOK_SECONDS)
        return loop.time() - begin


async def measure(consumers: int, groups: int, session_seconds: float, patience: float) -> Figures:
    """Start the consumers, kill one of the first group, and take the times. Raises `TimeoutError`."""
    share = consumers // groups
    zookeeper = MemoryZookeeper({TOPIC: [f"0-{number}" for number in range(share)]})
    milliseconds = round(session_seconds * 1000)
    settings = BrokerSettings(maximum_session_timeout_ms=milliseconds, response_timeout_ms=milliseconds)
    broker = PushBroker(0, zookeeper, settings)
    address = await broker.start()
    members = {
        f"g{group}": [
            PushConsumerProgram(f"g{group}", f"c{number:05}", '{"t": 1}', [address], session_seconds)
            for number in range(share)
        ]
        for group in range(groups)
    }
    crowd = Crowd(zookeeper, broker, members, patience)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    tasks = {}
    for number, one in enumerate((one for all_of in members.values() for one in all_of), 1):
        tasks[id(one)] = asyncio.create_task(one.run())
        if number % WAVE == 0:
            await asyncio.sleep(WAVE_SECONDS)
    try:
        await crowd.await_stability()
        stable = loop.time() - begin
        victim = members["g0"].pop()
        tasks[id(victim)].cancel()
        again = await crowd.await_stability()
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        await broker.close()
    registrations = sum(one.registrations for all_of in members.values() for one in all_of) + victim.registrations
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Figures(stable, again, registrations, memory)


def allow_sockets(consumers: int) -> None:
    """Raise the limit of open files to two a consumer. Exits if the machine does not allow it."""
    needed = 2 * consumers + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise SystemExit(f"push_consumers: {needed:,} open files are needed, the machine allows {hard:,}")
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--consumers", type=int, default=5000)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--session", type=float, default=30.0, metavar="SECONDS", help="session timeout (default: 30)")
    parser.add_argument("--patience", type=float, default=240.0, metavar="SECONDS", help="for each of the two times")
    options = parser.parse_args(arguments)
    allow_sockets(options.consumers)
    try:
        figures = asyncio.run(measure(options.consumers, options.groups, options.session, options.patience))
    except TimeoutError:
        print(f"push_consumers: {options.consumers:,} consumers were not stable after {options.patience:g} s")
        return 1
    print(f"{options.consumers:,} consumers in {options.groups:,} groups, session timeout {options.session:g} s")
    print(f"  stable after            {figures.seconds_to_stable:8.1f} s")
    print(f"  stable after a death    {figures.seconds_after_death:8.1f} s")
    print(f"  registrations           {figures.registrations:8,}")
    print(f"  memory, both ends       {figures.memory_mib:8.0f} MiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
