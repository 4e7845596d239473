"""Transitions of the model: abstract steps, the units of coverage.

A transition is the state of the group, the event, the rule that applied and the state afterwards, each in the words of
its protocol.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """One kind of step, each part as text."""

    state: str
    event: str
    rule: str
    after: str

    def __str__(self) -> str:
        return f"{self.state} / {self.event} / {self.rule} / {self.after}"

    @classmethod
    def parse(cls, text: str) -> "Transition":
        """The transition with this text, the inverse of `str`. Raises `ValueError`."""
        state, event, rule, after = text.split(" / ")
        return cls(state, event, rule, after)


TransitionFields = tuple[str, str, str, str]
"""The fields of a transition; tuples are faster to make and to count, one for each step of a trace."""
