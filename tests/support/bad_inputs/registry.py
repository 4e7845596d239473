"""All bad inputs."""

from collections.abc import Callable, Iterator, Mapping

from tests.support.bad_inputs.addresses import bad_addresses
from tests.support.bad_inputs.arguments import bad_arguments
from tests.support.bad_inputs.bad_input import BadInput
from tests.support.bad_inputs.profiles import bad_profiles
from tests.support.bad_inputs.recordings import bad_recordings
from tests.support.bad_inputs.reports import bad_reports
from tests.support.bad_inputs.traces import bad_traces

KINDS: Mapping[str, Callable[[], Iterator[BadInput]]] = {
    "arguments": bad_arguments,
    "addresses": bad_addresses,
    "profiles": bad_profiles,
    "traces": bad_traces,
    "reports": bad_reports,
    "recordings": bad_recordings,
}
"""What makes the bad inputs of a kind."""


def all_bad_inputs() -> list[BadInput]:
    """Every bad input; no two have one name."""
    return [case for make in KINDS.values() for case in make()]
