"""What is known of one registration from its channel alone."""

from dataclasses import dataclass, field

from fencepost.model.push.group import Registration
from fencepost.model.push.interest import Interest
from fencepost.traces.events import Event
from fencepost.traces.judge.push.channel_times import ChannelTimes
from fencepost.traces.judge.push.world import Partition


@dataclass(slots=True)
class MemberFacts:
    """A registration as its channel shows it. Attempts go by their numbers on the wire."""

    consumer: str
    connection: int
    interest: Interest
    times: ChannelTimes
    is_registered: bool = False
    is_closed: bool = False
    is_past: bool = False
    """Its coordinator has lost its place since."""
    may_close: bool = False
    """Its registration was refused, or it broke the rules."""
    stop: int | None = None
    """The attempt of the last Stop."""
    has_stopped: bool = False
    """That Stop is answered."""
    start: int | None = None
    """The attempt of the last Start."""
    held: bool = False
    """A Stop was seen, and the Start after it is not answered."""
    late_answers: set[int] = field(default_factory=set)
    """The attempts whose Stop it answered after a newer one had begun for others."""
    share: tuple[Partition, ...] = ()
    """Of the last Start."""
    fetching: tuple[Partition, ...] = ()
    """What it has said that it fetches."""

    @property
    def registration(self) -> Registration:
        """Its id and the number of its channel."""
        return self.consumer, self.connection

    @property
    def is_open(self) -> bool:
        """Whether it is registered on a channel that is not closed."""
        return self.is_registered and not self.is_closed

    def on_command(self, event: Event, number: int, partitions: tuple[Partition, ...]) -> None:
        """A Stop or Start was seen."""
        if event.api == "Stop":
            self.stop, self.has_stopped, self.held = number, False, True
        else:
            self.start, self.share = number, partitions

    def on_response(self, event: Event, number: int, error: int) -> None:
        """It responds to a Stop or Start of this attempt."""
        if event.api == "Stop":
            self.fetching = ()
            self.has_stopped = self.has_stopped or number == self.stop
            if number != self.stop:
                self.late_answers.add(number)
        elif number == self.start:
            self.held = False
            self.times.freed_at = event.time
            if not error:
                self.fetching = self.share
