"""`python -m tests.benchmarks.poll_fairness FOLDER...`: how long partitions with buffered records waited in the traces
of driven clients, beside the bounds of the theorems about draining.

The traces are those of `fencepost test-client --driven --only POLL-05 POLL-06 POLL-07 --traces FOLDER`. The scenario
`partitions-with-many-records` is KIP-41's example of A, B and C, `a-partition-that-is-refilled` that of A and B.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.client_judge.classic.draining import read_partition
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import open_trace

SCENARIOS = ("partitions-with-many-records", "a-partition-that-is-refilled")
READING_MS = 250
"""How long a client may take to read a Fetch response."""


@dataclass(slots=True)
class Wait:
    """A partition with buffered records: when they came, behind how many of others, and the polls that returned others
    since."""

    came: int
    ahead: int
    polls: int = 0


@dataclass(slots=True)
class Fairness:
    """The longest wait in a trace. `served` is the number of the poll that served it, from 1 on; `by_age` is the bound
    of a queue of completed fetches for that partition, `partitions` that of polls which go round."""

    limit: int = 0
    served: int = 0
    by_age: int = 0
    partitions: int = 0
    polls: int = 0
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    waits: dict[TopicPartition, Wait] = field(default_factory=dict)
    returned: dict[TopicPartition, int] = field(default_factory=dict)
    begun: int = 0

    def held(self, partition: TopicPartition) -> int:
        """The number of buffered records."""
        return max(0, self.ends.get(partition, 0) - self.positions.get(partition, 0))

    def follow(self, event: Event) -> None:
        """Take the next event of the trace."""
        if event.kind is Kind.INTERNAL and event.api == "driver":
            self.limit = event.body.get("max_poll_records", 0)
        elif event.kind is Kind.INTERNAL and event.api == "delivered":
            self.deliver({read_partition(name): end for name, end in event.body["ends"].items()}, event.time)
        elif event.kind is Kind.CALLBACK:
            self.waits.clear()
        elif event.kind is Kind.INTERNAL and event.api == "command":
            self.begun = event.time
        elif event.kind is Kind.POLL:
            for topic, number, offset in event.body["records"]:
                self.returned[str(topic), int(number)] = offset + 1
        elif event.kind is Kind.INTERNAL and event.api == "result":
            self.end_poll()

    def deliver(self, ends: dict[TopicPartition, int], time: int) -> None:
        """Records come."""
        ahead = sum(map(self.held, self.ends))
        for partition, end in ends.items():
            if not self.held(partition):
                self.waits[partition] = Wait(time, ahead)
            self.ends[partition] = end
            ahead += self.held(partition)
        self.partitions = max(self.partitions, sum(1 for each in self.ends if self.held(each)))

    def end_poll(self) -> None:
        """A poll is over."""
        if not self.returned:
            return
        self.polls += 1
        self.positions |= self.returned
        for partition, wait in tuple(self.waits.items()):
            if partition in self.returned:
                by_age = wait.ahead // max(self.limit, 1) + 1
                self.served, self.by_age = max((self.served, self.by_age), (wait.polls + 1, by_age))
                del self.waits[partition]
                if self.held(partition):
                    self.waits[partition] = Wait(self.begun, sum(map(self.held, self.ends)) - self.held(partition))
            elif wait.came + READING_MS <= self.begun:
                wait.polls += 1
        self.returned.clear()


def measure(events: Iterable[Event]) -> Fairness:
    """The fairness of the polls in a trace."""
    fairness = Fairness()
    for event in events:
        fairness.follow(event)
    return fairness


def main(folders: Sequence[str]) -> int:
    """Print a table."""
    print("| traces | scenario | records a poll | polls | partitions at once | served by poll | round | by age |")
    print("|---|---|---|---|---|---|---|---|")
    for folder in folders:
        for scenario in SCENARIOS:
            file = Path(folder) / f"{scenario}.jsonl"
            if not file.exists():
                print(f"| {folder} | {scenario} | not played |")
                continue
            found = measure(open_trace(file)[1])
            row = (Path(folder).name, scenario, found.limit or "no limit", found.polls, found.partitions)
            print(f"| {' | '.join(map(str, (*row, found.served, found.partitions, found.by_age)))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
