"""`explore` and `prove` for designs that never became a protocol: their holes, and what holds without them."""

import argparse
from collections.abc import Mapping

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import refuse_options
from fencepost.model.catalogue.design_hole import DesignHole
from fencepost.model.explore.hole_search import HoleSearch


def holes_of(protocol: str) -> tuple[tuple[HoleSearch, ...], Mapping[str, DesignHole]]:
    """The searches for the holes of a design, and its holes as the catalogue has them."""
    if protocol == "push":
        from fencepost.model.push.explore.holes import push_holes
        from fencepost.model.push.holes import PUSH_HOLES

        return push_holes(), PUSH_HOLES
    from fencepost.model.region.explore.holes import region_holes
    from fencepost.model.region.holes import REGION_HOLES

    return region_holes(), REGION_HOLES


def explore(options: argparse.Namespace, console: Console) -> int:
    """Search for every hole of the design, print each as it comes, and write them to a file."""
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
    results = explore_holes(*holes_of(options.protocol), limit, status.show, show)
    show(summarize(results))
    if options.json is not None:
        options.json.write_text(to_json(results, options.protocol), encoding="utf-8")
    return exit_code(results)


def prove(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports import kernel_proofs
    from fencepost.model.proofs.registry.design_results import design_results

    refuse_options(options, "prove", frozenset({"seed", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def doing(what: str, number: int, total: int) -> None:
        status.show(f"{what} ({number} of {total})")

    results = tuple(design_results(options.protocol, options.seed, doing))
    status.clear()
    for result in results:
        console.print_line(kernel_proofs.theorem_line(result))
    console.print_line(kernel_proofs.summarize_proofs(results))
    if options.json is not None:
        options.json.write_text(kernel_proofs.to_json(results, options.protocol, options.seed), encoding="utf-8")
    return kernel_proofs.exit_code(results)
