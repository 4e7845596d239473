"""`fencepost explore proposal`: the shortest runs in which Kafka and the proposal of client-side assignment differ."""

import argparse

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import refuse_options


def explore(options: argparse.Namespace, console: Console) -> int:
    """Search for every difference, print each with its run, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.proposal.report import describe_difference, exit_code, summarize, to_json
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
