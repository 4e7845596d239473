"""`explore` and `prove` for a protocol that was read from a text: the holes of that, and the theorems of a kernel."""

import argparse

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import refuse_options
from fencepost.model.protocols import load_part, registered_protocols


def explore(options: argparse.Namespace, console: Console) -> int:
    """Search for every hole of the text, print each as it comes, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports.holes import exit_code, explore_holes, summarize, to_json
    from fencepost.model.explore.search import NO_LIMIT

    refuse_options(options, "explore", frozenset({"limit", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def show(text: str) -> None:
        status.clear()
        console.print_line(text)

    limit = NO_LIMIT if options.limit is None else options.limit
    entry = registered_protocols()[options.protocol]
    results = explore_holes(load_part(entry.hole_searches)(), load_part(entry.holes), limit, status.show, show)
    show(summarize(results))
    if options.json is not None:
        options.json.write_text(to_json(results, options.protocol), encoding="utf-8")
    return exit_code(results)


def prove(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports import kernel_proofs
    from fencepost.model.proofs.registry.kernel_results import kernel_results

    refuse_options(options, "prove", frozenset({"seed", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def doing(what: str, number: int, total: int) -> None:
        status.show(f"{what} ({number} of {total})")

    theorems = load_part(registered_protocols()[options.protocol].theorems)
    results = tuple(kernel_results(theorems, options.seed, doing))
    status.clear()
    for result in results:
        console.print_line(kernel_proofs.theorem_line(result))
    console.print_line(kernel_proofs.summarize_proofs(results))
    if options.json is not None:
        options.json.write_text(kernel_proofs.to_json(results, options.protocol, options.seed), encoding="utf-8")
    return kernel_proofs.exit_code(results)
