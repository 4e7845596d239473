"""The push coordinator as the judge of traces sees it."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fencepost.model.push.rules import PUSH
from fencepost.traces.events import Header
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.push.follower import PushFollower
from fencepost.traces.operations import Operation
from fencepost.traces.verdict import CheckResult


class GroupName(NamedTuple):
    """The group that a request is about."""

    group: str


class PushProtocol(JudgedProtocol):
    """Reads a trace of push; the follower does all the judging."""

    specification = PUSH

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.follower = PushFollower(header)

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[GroupName]:
        """The group of the connection, once a consumer has registered on it."""
        group = self.follower.owners.get(operation.connection)
        if group is not None:
            yield GroupName(group.name)

    def new_follower(self) -> PushFollower:
        """The follower of this trace."""
        return self.follower

    def check_results(self) -> tuple[CheckResult, ...]:
        """The requirements that the trace shows to hold."""
        return self.follower.check_results()
