"""A member of a swarm: the reference client with an application that polls, commits, freezes and is watched."""

from collections.abc import Callable

from fencepost.adapters.classic.client.client import Pace, ReferenceClient
from fencepost.adapters.classic.client.fetcher import ReturnedRecords
from fencepost.adapters.classic.client.links import AwaitedResponse, Network
from fencepost.conformance.swarm.watch import SwarmWatch
from fencepost.model.classic.member.client import Callback, CallbackKind
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import ClientInput, CommitOffsets
from fencepost.model.groups.messages import Partition
from fencepost.model.wire.codec import Body

SWARM_PACE = Pace(cycle=0.25, metadata=5.0, fetch=0.5)
"""Slow enough for hundreds of members in one process."""
RECORDS_PER_POLL = 500


class SwarmMember(ReferenceClient):
    """One life of a process, with a name of its own."""

    def __init__(
        self, name: str, settings: ClientSettings, network: Network, now: Callable[[], int], watch: SwarmWatch
    ) -> None:
        super().__init__(settings, network, now, SWARM_PACE)
        self.name = name
        self.fetcher.limit = RECORDS_PER_POLL
        self.is_frozen = False
        self._watch = watch
        self._kept: list[ClientInput] = []
        self._newest_when_sent: dict[int, int] = {}

    @property
    def generation(self) -> int:
        """The generation that it is in, -1 for none."""
        return self.client.member.generation

    def start(self, topic: str) -> None:
        """Begin to consume a topic."""
        self.topics = {topic}
        self.begin()
        self.start_task(self._consume(topic))

    async def _consume(self, topic: str) -> None:
        await self.has_metadata.wait()  # a leader that knows no topics would plan for none
        await self.poll_forever([topic])

    def freeze(self) -> None:
        """Do nothing until it thaws, as a process that is stopped."""
        self.is_frozen = True
        self._watch.on_gone(self.name)

    def thaw(self) -> None:
        """Go on: commit what it believes to be its own, and then hear what has happened meanwhile."""
        self.is_frozen = False
        kept, self._kept = self._kept, []
        self.give(CommitOffsets(is_sync=False))
        for given in kept:
            self.give(given)

    def give(self, given: ClientInput) -> None:
        """As `ReferenceClient.give`; a frozen client hears of nothing."""
        if self.is_frozen:
            self._kept.append(given)
        else:
            super().give(given)

    def poll(self, timeout_ms: int = 0) -> bool:
        """As `ReferenceClient.poll`; a frozen client does not poll."""
        return not self.is_frozen and super().poll(timeout_ms)

    # -- what is watched ------------------------------------------------------------------------------------------

    def on_records(self, returned: list[ReturnedRecords]) -> None:
        """Tell the watch."""
        for taken in returned:
            if taken.offsets:
                self._watch.on_records(self.name, self.generation, taken.partition, taken.offsets)

    def on_callback(self, callback: Callback) -> None:
        """Tell the watch, and return from the callback."""
        if callback.kind is CallbackKind.ASSIGNED:
            self._watch.on_assigned(self.name, self.generation, callback.partitions)
        else:
            self._watch.on_given_up(self.name, callback.partitions)
        super().on_callback(callback)

    def transmit(self, api: str, body: Body, handle: int, node: int) -> None:
        """Take note of what is known when a commit is sent."""
        if api == "OffsetCommit":
            self._newest_when_sent[handle] = self._watch.newest
        super().transmit(api, body, handle, node)

    def take_response(self, sent: AwaitedResponse, body: Body) -> None:
        """Tell the watch of generations and of commits."""
        if sent.api == "JoinGroup" and not body["error_code"]:
            self._watch.on_joined(body["generation_id"])
        elif sent.api == "OffsetCommit":
            self._tell_commit(sent, body)
        super().take_response(sent, body)

    def _tell_commit(self, sent: AwaitedResponse, body: Body) -> None:
        errors = {
            (topic["name"], row["partition_index"]): row["error_code"]
            for topic in body["topics"]
            for row in topic["partitions"]
        }
        offsets: dict[Partition, int] = {
            (topic["name"], row["partition_index"]): row["committed_offset"]
            for topic in sent.request["topics"]
            for row in topic["partitions"]
        }
        accepted = {partition: offset for partition, offset in offsets.items() if not errors.get(partition)}
        error = 0 if accepted else next(iter(errors.values()), 0)
        newest = self._newest_when_sent.pop(sent.handle, -1)
        generation = sent.request["generation_id_or_member_epoch"]
        self._watch.on_commit(self.name, generation, newest, accepted, error)
