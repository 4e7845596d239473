"""The times of one channel: when pings are due, when the lease of a consumer is over, which retry a ping is."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.model.push.lease import ping_period, removal_time
from fencepost.traces.events import Body


@dataclass(slots=True)
class ChannelTimes:
    """One registration as its pings and responses show it. Times are milliseconds of the trace.

    A message is seen up to `slack` after it was sent, and a timer fires up to `slack` late.
    """

    session_timeout: int
    slack: int
    registered_at: int
    heard_at: int
    """When the consumer sent its last response."""
    pinged_at: int | None = None
    held_since: int | None = None
    freed_at: int = 0
    unanswered: int = 0
    """How many pings were seen since the last one that was answered."""
    pings: int = 0
    answered: int = 0
    """The number of the last ping that was answered."""
    answered_at: int = 0
    before_answer: tuple[int, int] = (0, 0)
    """`unanswered` and `answered` before the last answer, which the coordinator may not have had."""
    awaited: list[int] = field(default_factory=list)
    """The numbers of the pings that are not answered, in order."""

    @property
    def lease_end(self) -> int:
        """Before this moment the coordinator cannot take the consumer for dead."""
        return removal_time(self.heard_at, self.session_timeout, 0)

    def on_ping(self, body: Body, now: int) -> Iterator[tuple[str, str, str, str]]:
        """The requirements that a ping breaks, each with the field, what was expected and what was seen."""
        period = ping_period(self.session_timeout)
        if self.pinged_at is not None and now < self.pinged_at + period - self.slack:
            told = f"not before {self.pinged_at + period} ms"
            yield "PUSH-08", "early", told, f"{now} ms"
        in_flight = bool(self.answered) and now <= self.answered_at + self.slack
        counts = {self.unanswered, *([self.before_answer[0]] if in_flight else [])}
        if body["num_retries"] not in counts:
            yield "PUSH-12", "num_retries", str(self.unanswered), str(body["num_retries"])
        known = {self.answered, *([self.before_answer[1]] if in_flight else [])}
        if body.get("confirmed", self.answered) not in known:
            yield "PUSH-42", "confirmed", str(self.answered), str(body["confirmed"])
        self.pings += 1
        self.unanswered += 1
        self.pinged_at = now
        self.awaited.append(self.pings)

    def on_ping_response(self, now: int) -> None:
        """The consumer has answered the oldest ping."""
        if self.awaited:
            self.before_answer = self.unanswered, self.answered
            self.answered, self.answered_at = self.awaited.pop(0), now
            self.unanswered = len(self.awaited)
        self.heard_at = now

    def overdue_ping(self, now: int) -> int | None:
        """When the ping was due that is missing by `now`; None if none is."""
        if self.held_since is not None:
            return None
        due = max((self.pinged_at or self.registered_at) + ping_period(self.session_timeout), self.freed_at)
        return due if now > due + 2 * self.slack and now <= self.lease_end else None
