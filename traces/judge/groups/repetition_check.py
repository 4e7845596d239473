"""The check of repeated steps: each is taken anew and has to come to the same."""

from fencepost.traces.events import Operation
from fencepost.traces.judge.groups.protocol import GroupProtocol
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation
from fencepost.traces.judge.search.search import Search
from fencepost.traces.judge.search.stepper import RepeatedStep


class RepetitionError(Exception):
    """A step comes to something else than the one that it was taken to repeat."""


def check_repetition(
    protocol: GroupProtocol, search: Search, before: Configuration, operation: Operation, step: RepeatedStep
) -> None:
    """Take a step that `search` has repeated in the configuration `before` anew, as it was taken the first time.

    Raises `RepetitionError`.
    """
    stepper = search.stepper.copy()
    (request,) = protocol.requests_in(operation, ())
    anew, part = Search(stepper, [before]), GroupOperation(operation, request)
    found = anew.configurations = anew.on_request(part)
    if operation.handle in stepper.open_operations and operation.responded_at is not None:
        found = anew.on_response(part, operation.responded_at)
    if found != search.configurations or operation.handle in stepper.open_operations:
        raise RepetitionError(f"request {operation.handle - 1}: {found} instead of {search.configurations}")
    (after,) = found
    transition = None if after.path is None else protocol.transition_of(after.path)
    if after.path is None or after.path.rule != step.rule or transition != step.transition:
        raise RepetitionError(f"request {operation.handle - 1}: {after.path} instead of {step}")
