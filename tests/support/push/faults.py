"""Faults of a push coordinator: each replaces a method of the bundled one."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from fencepost.adapters.push.broker import BrokerSettings, ConsumerChannel, GroupRebalancer, PushBroker, Shares
from fencepost.adapters.push.target import BundledPushTarget
from fencepost.adapters.push.zookeeper import MemoryZookeeper
from fencepost.model.push.wire import Body


class FaultyBroker(PushBroker):
    """A broker whose groups are of another class."""

    group_class: type[GroupRebalancer] = GroupRebalancer

    def new_group(self, name: str) -> GroupRebalancer:
        plain = PushBroker.new_group(self, name)
        group = self.group_class(name, plain.zookeeper, plain.queue, plain.election)
        group.retries, group.backoff, group.wait = plain.retries, plain.backoff, plain.wait
        group.quiet_until = plain.quiet_until
        return group


def with_group(group_class: type[GroupRebalancer]) -> type[FaultyBroker]:
    """A broker with groups of this class."""
    return type(group_class.__name__, (FaultyBroker,), {"group_class": group_class})


class NoBarrier(GroupRebalancer):
    """Sends Start without waiting for the responses to Stop."""

    async def ask(
        self, channels: dict[str, ConsumerChannel], name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        if name == "Start":
            return await GroupRebalancer.ask(self, channels, name, bodies)
        for who, channel in channels.items():
            channel.send(name, {"attempt": self.attempts, **bodies[who]})
        return {}


class ForgetsChanges(GroupRebalancer):
    """Ignores changes while a rebalance is under way."""

    is_busy = False

    def request(self) -> None:
        if not self.is_busy:
            GroupRebalancer.request(self)

    async def attempt(self) -> bool:
        self.is_busy = True
        try:
            return await GroupRebalancer.attempt(self)
        finally:
            self.is_busy = False


class BelievesRecordedMap(GroupRebalancer):
    """Does nothing where the recorded owners are those computed, whoever wrote them."""

    async def attempt(self) -> bool:
        shares = self.assign(dict(sorted(self.members.items())))
        owners = {partition: name for name, share in shares.items() for partition in share}
        assert isinstance(self.zookeeper, MemoryZookeeper)
        if self.zookeeper.owners.get(self.name) == owners:
            return True
        return await GroupRebalancer.attempt(self)


class GivesUpForGood(GroupRebalancer):
    """Its handler dies once the retries are used up."""

    async def run(self) -> None:
        while True:
            await self.requested.wait()
            await asyncio.sleep(max(0.0, self.quiet_until - asyncio.get_running_loop().time()))
            if not await self.rebalance_with_retries():
                return


class CountsStaleResponses(GroupRebalancer):
    """Takes the oldest response that a member owes for that to the present attempt."""

    async def ask(
        self, channels: dict[str, ConsumerChannel], name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        owed = {
            who: next((future for api, future in channel._awaited if api == name), None)
            for who, channel in channels.items()
        }
        sent = {who: channel.send(name, {"attempt": self.attempts, **bodies[who]}) for who, channel in channels.items()}
        futures = {who: owed[who] or sent[who] for who in channels}
        for who, future in sent.items() if name == "Stop" else ():
            future.add_done_callback(partial(self.on_stopped, who))
        if not futures:
            return {}
        await asyncio.wait(futures.values(), timeout=self.wait)
        if not all(future.done() and not future.cancelled() for future in futures.values()):
            return None
        return {who: future.result() for who, future in futures.items()}


class LeavesLastOut(GroupRebalancer):
    """Gives the last partition to nobody."""

    def assign(self, channels: dict[str, ConsumerChannel]) -> Shares:
        shares = GroupRebalancer.assign(self, channels)
        last = max((partition for share in shares.values() for partition in share), default=None)
        return {name: tuple(each for each in share if each != last) for name, share in shares.items()}


class GivesAllToEach(GroupRebalancer):
    """Sends the whole map to every member."""

    def start_body(self, share: object) -> Body:
        everything = tuple(partition for each in self.shares.values() for partition in each)
        return GroupRebalancer.start_body(self, everything)


class IgnoresLastOffsets(GroupRebalancer):
    """Records no offset of a response to Stop."""

    def record_offsets(self, stopped: dict[str, Body]) -> None:
        if len(stopped) == 1 and not any(channel.is_held for channel in self.members.values()):
            GroupRebalancer.record_offsets(self, stopped)


class NeverBacksOff(GroupRebalancer):
    """Retries nearly at once, without waiting for the responses to the end."""

    async def rebalance_with_retries(self) -> bool:
        self.backoff, self.wait = 0.005, min(self.wait, 0.2)
        return await GroupRebalancer.rebalance_with_retries(self)


class NeverRetries(GroupRebalancer):
    """Takes a failed attempt for done."""

    async def rebalance_with_retries(self) -> bool:
        self.requested.clear()
        await GroupRebalancer.attempt(self)
        return True


class StopsOnce(GroupRebalancer):
    """A retry sends Start alone."""

    has_stopped = False

    async def ask(
        self, channels: dict[str, ConsumerChannel], name: str, bodies: dict[str, Body]
    ) -> dict[str, Body] | None:
        if name == "Stop" and self.has_stopped:
            return {}
        found = await GroupRebalancer.ask(self, channels, name, bodies)
        self.has_stopped = name == "Stop" or found is None
        return found


class NoQuietPeriod(PushBroker):
    """Rebalances at once after an election."""

    def new_group(self, name: str) -> GroupRebalancer:
        group = PushBroker.new_group(self, name)
        group.quiet_until = 0.0
        return group


class KeepsChannels(PushBroker):
    """Goes on when its session is over."""

    def step_down(self) -> None:
        self.election = None


class AcceptsDuplicates(PushBroker):
    """Lets a second consumer have the id of a live one."""

    def registration_error(self, body: Body) -> int:
        error = PushBroker.registration_error(self, body)
        return 0 if error == 2 else error


class AcceptsAnyTimeout(PushBroker):
    """Has no minimum of session timeouts."""

    def registration_error(self, body: Body) -> int:
        error = PushBroker.registration_error(self, body)
        return 0 if error == 3 else error


class IgnoresTopics(PushBroker):
    """Hears nothing of new topics and partitions."""

    def on_topic(self, topic: str) -> None:
        return


class IgnoresNewTopics(PushBroker):
    """Hears of new partitions alone."""

    def on_topic(self, topic: str) -> None:
        if len(self.zookeeper.topics[topic]) > 1:
            PushBroker.on_topic(self, topic)


class RebalancesEverybody(PushBroker):
    """Rebalances every group at each change."""

    def on_topic(self, topic: str) -> None:
        for group in self.groups.values():
            group.completed = None
            group.request()


class PingingBroker(PushBroker):
    """A broker with another schedule of pings."""

    share = 3.0
    removes_after = 1.0
    respects_held = True
    counts_retries = True
    confirms_all = False

    async def ping_consumers(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            for group in list(self.groups.values()):
                for channel in list(group.members.values()):
                    if now > channel.heard_at + self.removes_after * channel.session_timeout:
                        channel.close()
                        group.remove(channel)
                    elif now >= channel.ping_due and not (channel.is_held and self.respects_held):
                        channel.ping_due = now + channel.session_timeout / self.share
                        channel.retries *= self.counts_retries
                        channel.confirmed = channel.pings if self.confirms_all else channel.confirmed
                        channel.ping()
            await asyncio.sleep(self.settings.tick_ms / 1000)


def pinging(name: str, **changes: object) -> type[PushBroker]:
    """A broker whose pings differ so."""
    return type(name, (PingingBroker,), changes)


class NamesItself(PushBroker):
    """Takes itself for the coordinator."""

    def describe(self) -> Body:
        return {**PushBroker.describe(self), "coordinator_id": 70_000}


@dataclass(frozen=True, slots=True)
class PushFault:
    """A fault, and the requirements of which one has to fail."""

    broker: type[PushBroker]
    requirements: frozenset[str]

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.broker.__name__

    def make_target(self) -> BundledPushTarget:
        """The bundled target with this fault."""

        def make_broker(number: int, zookeeper: MemoryZookeeper, settings: BrokerSettings) -> PushBroker:
            return self.broker(number, zookeeper, replace(settings))

        return BundledPushTarget(make_broker=make_broker)


def fault(broker: type[PushBroker], *numbers: str) -> PushFault:
    """A fault of these requirements."""
    return PushFault(broker, frozenset(f"PUSH-{number}" for number in numbers))


TRAINING = (
    fault(with_group(NoBarrier), "38"),
    fault(with_group(ForgetsChanges), "15", "29", "14"),
    fault(with_group(BelievesRecordedMap), "36", "33", "41", "43"),
    fault(with_group(GivesUpForGood), "20"),
    fault(with_group(CountsStaleResponses), "39"),
    fault(with_group(LeavesLastOut), "34"),
    fault(with_group(GivesAllToEach), "35"),
    fault(with_group(IgnoresLastOffsets), "46"),
    fault(NoQuietPeriod, "42"),
    fault(KeepsChannels, "44", "02"),
    fault(AcceptsDuplicates, "26"),
    fault(AcceptsAnyTimeout, "27"),
    fault(IgnoresTopics, "14", "13", "05", "30"),
    fault(pinging("PingsHeldChannels", respects_held=False), "09"),
    fault(pinging("PingsTooOften", share=6.0), "08"),
    fault(pinging("PingsTooRarely", share=1.5), "08", "07"),
)
"""The judge was written with these in mind."""
HELD_OUT = (
    fault(with_group(NeverBacksOff), "21"),
    fault(with_group(NeverRetries), "41", "20", "21"),
    fault(with_group(StopsOnce), "37", "41"),
    fault(IgnoresNewTopics, "13", "30"),
    fault(RebalancesEverybody, "14"),
    fault(pinging("RemovesEarly", removes_after=0.5), "11"),
    fault(pinging("NeverRemoves", removes_after=1e9), "11"),
    fault(pinging("NumbersNoRetry", counts_retries=False), "12"),
    fault(pinging("ConfirmsUnanswered", confirms_all=True), "42"),
    fault(NamesItself, "23"),
)
"""These were written after the judge, and the judge was not changed for them; the random schedules got consumers with a
wildcard for `IgnoresNewTopics`."""
FAULTS: Mapping[str, PushFault] = {each.name: each for each in (*TRAINING, *HELD_OUT)}
