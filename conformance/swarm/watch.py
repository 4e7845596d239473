"""What has to hold of all members together: one owner, no commit of a fenced member, every record; and owners' absence.

Times are milliseconds. A member is one life of a process: one that starts again is another.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.model.groups.messages import Partition

MAX_VIOLATIONS = 20


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that must not happen, when it did, and the members that did it."""

    rule: str
    time: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which a partition had no owner."""

    partition: Partition
    since: int
    until: int

    @property
    def duration(self) -> int:
        """How long it lasted."""
        return self.until - self.since


ONE_OWNER = "one owner in a generation"
FENCED_COMMIT = "no commit of a fenced member"
NO_LOSS = "no commit beyond what was returned"
GenerationOf = Callable[[str], int]
"""The present generation of a member, -1 for none."""


@dataclass(slots=True)
class SwarmWatch:
    """Follows all members. `generation_of` tells the generation that a member is in."""

    now: Callable[[], int]
    generation_of: GenerationOf
    newest: int = -1
    """The newest generation that a coordinator has told a member."""
    owners: dict[Partition, set[str]] = field(default_factory=dict)
    returned: dict[Partition, set[int]] = field(default_factory=dict)
    repeated: int = 0
    """Records that were returned again."""
    since: dict[Partition, int] = field(default_factory=dict)
    """When a partition lost its last owner."""
    first_owned: dict[Partition, int] = field(default_factory=dict)
    """When a partition had an owner for the first time."""
    absences: list[Absence] = field(default_factory=list)
    violations: list[Mishap] = field(default_factory=list)
    assignments: int = 0
    accepted: int = 0
    refused: int = 0
    """Commits that the coordinator accepted, or refused."""
    stale_refused: int = 0
    """Commits of a generation that was known to be over when they were sent, and that were refused."""

    def on_joined(self, generation: int) -> None:
        """The coordinator told a member of a generation."""
        self.newest = max(self.newest, generation)

    def on_assigned(self, member: str, generation: int, partitions: Iterable[Partition]) -> None:
        """A member is called back about partitions that it is assigned in a generation."""
        self.assignments += 1
        now = self.now()
        for partition in partitions:
            self.check_owner(member, generation, partition, "is assigned")
            self.owners.setdefault(partition, set()).add(member)
            self.first_owned.setdefault(partition, now)
            if (since := self.since.pop(partition, None)) is not None:
                self.absences.append(Absence(partition, since, now))

    def on_given_up(self, member: str, partitions: Iterable[Partition]) -> None:
        """A member has revoked or lost partitions, or is gone with them."""
        for partition in partitions:
            owners = self.owners.get(partition, set())
            if member in owners:
                owners.discard(member)
                if not owners:
                    self.since[partition] = self.now()

    def on_gone(self, member: str) -> None:
        """A member crashed, closed or froze: nobody consumes what it owned."""
        self.on_given_up(member, [partition for partition, owners in self.owners.items() if member in owners])

    def on_records(self, member: str, generation: int, partition: Partition, offsets: Sequence[int]) -> None:
        """A poll of a member returned records of a partition."""
        self.check_owner(member, generation, partition, "returns records of")
        known = self.returned.setdefault(partition, set())
        self.repeated += sum(offset in known for offset in offsets)
        known.update(offsets)

    def check_owner(self, member: str, generation: int, partition: Partition, what: str) -> None:
        """Nobody else owns the partition who is in the same generation, if that is the present one."""
        if generation != self.newest:
            return
        others = sorted(
            each for each in self.owners.get(partition, set()) - {member} if self.generation_of(each) == generation
        )
        if others:
            where = f"{partition[0]}/{partition[1]}"
            self.violate(
                ONE_OWNER, f"{member} {what} {where}, which {', '.join(others)} owns in generation {generation}"
            )

    def on_commit(
        self, member: str, generation: int, newest_when_sent: int, offsets: Mapping[Partition, int], error: int
    ) -> None:
        """The response to a commit, with the newest generation that was known when it was sent."""
        is_stale = generation < newest_when_sent
        if error:
            self.refused += 1
            self.stale_refused += is_stale
            return
        self.accepted += 1
        if is_stale:
            self.violate(
                FENCED_COMMIT,
                f"a commit of {member} in generation {generation} is accepted; "
                f"generation {newest_when_sent} was there before it was sent",
            )
        for partition, offset in offsets.items():
            if offset > 0 and (missing := set(range(offset)) - self.returned.get(partition, set())):
                where = f"{partition[0]}/{partition[1]}"
                self.violate(
                    NO_LOSS, f"{member} commits {offset} for {where}; record {min(missing)} was never returned"
                )

    def violate(self, rule: str, sentence: str) -> None:
        """Something must not happen that did."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(Mishap(rule, self.now(), sentence))
