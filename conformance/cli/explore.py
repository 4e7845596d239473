"""The command line of `fencepost explore`: options in, lines and files out."""

import argparse
import sys
from collections.abc import Callable

from fencepost.conformance.reports.exploration import SearchDisplay, heading, result_line, summary, to_json
from fencepost.conformance.run.exploration import Instance, OutputFiles, UnusableSizes, run_exploration
from fencepost.model.explore.search import NO_LIMIT

__all__ = ["UnusableSizes", "run"]


def run(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Explore as asked. Raises `UnusableSizes` and `OSError`."""
    instance = instance_of(options)
    instance.setting()
    files = OutputFiles(options.dot, options.graphml, options.picture)
    files.check_writable()
    if options.json is not None:
        options.json.open("a").close()
    display = SearchDisplay(sys.stderr, live=sys.stderr.isatty(), limit=instance.limit)

    def tell(text: str) -> None:
        display.clear()
        show(f"{text}\n")

    tell(heading(instance))
    came_of_it = run_exploration(instance, display, display.show_status, lambda result: tell(result_line(result)))
    tell(summary(came_of_it))
    if options.json is not None:
        options.json.write_text(to_json(came_of_it), encoding="utf-8")
    left_out = files.write(came_of_it.exploration, display.show_status)
    if left_out:
        tell(left_out)
    display.clear()
    return came_of_it.exit_code()


def instance_of(options: argparse.Namespace) -> Instance:
    """The instance that the options ask for."""
    return Instance(
        members=options.members,
        static=options.static,
        eager=options.eager,
        heartbeats=not options.no_heartbeats,
        partitions=options.partitions,
        ids=options.ids,
        generations=options.generations,
        requests=options.requests,
        slots=options.slots,
        reduced=not options.full,
        limit=NO_LIMIT if options.limit is None else options.limit,
        settle=0 if options.no_liveness else options.settle,
    )
