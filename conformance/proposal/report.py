"""`fencepost explore proposal`: the shortest runs in which Kafka and the proposal of client-side assignment differ."""

import argparse
import json
from collections.abc import Sequence

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import refuse_options
from fencepost.conformance.results import ExitCode
from fencepost.model.proposal.explore import STARTS, FoundDifference


def explore(options: argparse.Namespace, console: Console) -> int:
    """Search for every difference, print each with its run, and write them to a file."""
    from fencepost.conformance.cli.files import check_outputs
    from fencepost.model.explore.search import NO_LIMIT
    from fencepost.model.proposal.explore import find_differences

    refuse_options(options, "explore", frozenset({"limit", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()
    status.show("searching for differences")
    found = []
    for one in find_differences(NO_LIMIT if options.limit is None else options.limit):
        status.clear()
        console.print_line(describe_difference(one))
        found.append(one)
    console.print_line(summarize(found))
    if options.json is not None:
        options.json.write_text(to_json(found), encoding="utf-8")
    return exit_code(found)


def describe_difference(found: FoundDifference) -> str:
    """A difference, with its shortest run."""
    one = found.difference
    title = f"{one.name}: {'what Kafka gave up' if one.is_given_up else 'what Kafka spared itself'}"
    lines = [title, f"  Kafka:    {one.kafka}", f"  proposal: {one.proposal}"]
    if found.run is None:
        return "\n".join([*lines, "  No run was found within the limit."])
    steps = f"{len(found.run)} move{'s' * (len(found.run) > 1)}"
    lines.append(f"  The shortest run, {steps} from where {STARTS[one.start]}:")
    lines += [f"    {number:2}. {label}" for number, label in enumerate(found.run, 1)]
    return "\n".join(lines)


def summarize(found: Sequence[FoundDifference]) -> str:
    """How many differences there are."""
    shown = sum(one.run is not None for one in found)
    return f"{shown} of {len(found)} differences found"


def exit_code(found: Sequence[FoundDifference]) -> ExitCode:
    """3 if a difference was not found within the limit."""
    return ExitCode.CONFORMANT if all(one.run is not None for one in found) else ExitCode.INCONCLUSIVE


def to_json(found: Sequence[FoundDifference]) -> str:
    """The differences as JSON."""
    rows = [
        {
            "name": one.difference.name,
            "kafka": one.difference.kafka,
            "proposal": one.difference.proposal,
            "given_up": one.difference.is_given_up,
            "start": STARTS[one.difference.start],
            "run": None if one.run is None else list(one.run),
        }
        for one in found
    ]
    return json.dumps({"format": "fencepost-differences", "version": 1, "differences": rows}, indent=2) + "\n"
