"""The interface of a protocol to the judge of one group: the part that the search does not need."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.diagnosis.diagnosis import Diagnosis, Recovery
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch, Path, Request
from fencepost.traces.judge.search.stepper import Stepper
from fencepost.traces.model_transitions import TransitionFields
from fencepost.traces.verdict import Violation


class GroupProtocol(Protocol):
    """Reads the messages of one trace for the judges of its groups. `JudgedProtocol` is the whole interface."""

    @abstractmethod
    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterable[Request]:
        """The request as each group sees it that it concerns; `groups` are those known so far.

        Raises AttributeError, KeyError or TypeError if it is not well formed.
        """

    @abstractmethod
    def new_stepper(self, group: str, settings: Settings) -> Stepper:
        """A stepper for a group of which nothing was seen yet."""

    @abstractmethod
    def build_violation(self, group: str, part: GroupOperation, mismatch: Mismatch, rules: frozenset[str]) -> Violation:
        """The mismatch in words; `rules` are those that explain the operation as far as it is settled."""

    def recover(self, diagnosis: Diagnosis, body: Body, operations: Mapping[int, GroupOperation]) -> Recovery | None:
        """Where to go on after the mismatches of a diagnosis, the last of them in the response `body`; None if that is
        not beyond doubt."""
        return None

    def silence_grace(self) -> int | None:
        """How long after its latest moment a response may still be out, in ms; None: silence is never a violation."""
        return None

    def is_handled_by_coordinator(self, part: GroupOperation) -> bool:
        """Whether it is the coordinator of the group that has to respond, so that its silence means something."""
        return True

    def is_sign_of_life(self, part: GroupOperation) -> bool:
        """Whether the response shows that the coordinator of the group is alive and in charge."""
        return part.operation.response is not None and self.is_handled_by_coordinator(part)

    def undecidable_reason(self, part: GroupOperation) -> str:
        """Why an operation cannot be judged; empty if it can."""
        return ""

    def excuse_for(self, part: GroupOperation) -> str:
        """Why a response without an explanation is no violation; empty if it is one."""
        return ""

    def transition_of(self, step: Path) -> TransitionFields | None:
        """The transition of the model that a step is; None if it is not one."""
        return None
