"""`fencepost explore push` and `fencepost prove push`: holes of the draft, and what holds without them."""

import argparse

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import refuse_options


def explore(options: argparse.Namespace, console: Console) -> int:
    """Search for every hole of the draft, print each as it comes, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports.push.exploration import exit_code, explore_holes, summarize, to_json
    from fencepost.model.explore.push.holes import push_holes
    from fencepost.model.explore.search import NO_LIMIT

    refuse_options(options, "explore", frozenset({"limit", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def show(text: str) -> None:
        status.clear()
        console.print_line(text)

    limit = NO_LIMIT if options.limit is None else options.limit
    results = explore_holes(push_holes(), limit, status.show, show)
    show(summarize(results))
    if options.json is not None:
        options.json.write_text(to_json(results), encoding="utf-8")
    return exit_code(results)


def prove(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports.push import proofs

    refuse_options(options, "prove", frozenset({"seed", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def doing(what: str, number: int, total: int) -> None:
        status.show(f"{what} ({number} of {total})")

    results = proofs.prove_push(options.seed, doing)
    status.clear()
    for result in results:
        console.print_line(proofs.theorem_line(result))
    console.print_line(proofs.summarize_proofs(results))
    if options.json is not None:
        options.json.write_text(proofs.to_json(results, options.seed), encoding="utf-8")
    return proofs.exit_code(results)
