"""The commands that show the model: `list` and `explain` requirements, `prove` theorems, `explore` small groups."""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import (
    Command,
    OneOf,
    Option,
    choose_protocol,
    count,
    refuse_options,
    requirement_pattern,
    run_protocol,
    whole,
)

if TYPE_CHECKING:
    from fencepost.conformance.classic.exploration import Instance

SUBJECTS = {"coordinator": "", "client": "  of clients"}
"""What is said of a family by the subject of its requirements, if it is not its name."""


# --- list, explain


def run_list(options: argparse.Namespace, console: Console) -> int:
    """List the requirements by family: id, level, tier, what they need, and title."""
    from itertools import groupby

    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.specification import select_from_all, specification_of

    chosen = select_from_all(options.patterns)
    if options.json:
        rows = [
            {
                "id": each.id,
                "subject": specification_of(each).subject,
                "family": each.family,
                "level": str(each.level),
                "tier": str(each.tier),
                "testability": str(each.testability),
                "needs": list(each.needs),
                "title": each.title,
                "sentence": each.sentence,
                "source": each.source,
            }
            for each in chosen
        ]
        console.print_line(json.dumps(rows, indent=2))
        return ExitCode.CONFORMANT
    for (subject, family), members in groupby(chosen, key=lambda each: (specification_of(each).subject, each.family)):
        requirements = list(members)
        console.print_line(f"{family}  {len(requirements)}{SUBJECTS.get(subject, f'  of the {subject}')}")
        for each in requirements:
            needs = f"  [needs {', '.join(each.needs)}]" if each.needs else ""
            console.print_line(f"  {each.id:<12}{each.level:<8}{each.tier:<14}{each.title}{needs}")
    return ExitCode.CONFORMANT


def run_explain(options: argparse.Namespace, console: Console) -> int:
    """Print sentence, source, needs, rules, scenarios and an example of each requirement."""
    from fencepost.conformance.classic.clients import DRIVEN_CLIENTS
    from fencepost.conformance.reports.requirements import describe_capabilities, explain_requirement
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run.bundled import example_schedule
    from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
    from fencepost.conformance.specification import (
        CLIENT_SPECIFICATION,
        DEFAULT_SPECIFICATION,
        holes_that_break,
        select_from_all,
        specification_of,
    )

    coordinator, width = describe_capabilities(), console.width()
    for number, each in enumerate(select_from_all(options.patterns)):
        specification = specification_of(each)
        if specification is DEFAULT_SPECIFICATION:
            names = [one.name for one in DEFAULT_PROTOCOL.scenarios if each.id in one.requirements]
            example = example_schedule(each)
            text = explain_requirement(each, specification, coordinator, names, example=example, width=width)
        elif specification is CLIENT_SPECIFICATION:
            names = [one.name for one in DRIVEN_CLIENTS.scenarios if each.id in one.requirements]
            text = explain_requirement(each, specification, DRIVEN_CLIENTS.needs, names, width=width)
        else:
            text = explain_requirement(each, specification, coordinator, (), holes_that_break(each), width=width)
        console.print(("\n" if number else "") + text)
    return ExitCode.CONFORMANT


# --- prove


def prove_classic(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result as it comes, and write them to a file."""
    from fencepost.conformance.classic.reports import proofs
    from fencepost.conformance.cli.files import check_outputs
    from fencepost.model.classic.proofs.induction import ProofSize
    from fencepost.model.classic.proofs.results import share_sentence

    check_outputs({"--json": options.json})
    status = console.status_line()

    def show_progress(doing: str, number: int, total: int) -> None:
        status.show(f"{doing} ({number} of {total})")

    def show_result(line: str) -> None:
        status.clear()
        console.print_line(line)

    size = ProofSize(options.slots, options.partitions, options.protocols)
    proof = proofs.prove(size, options.seed, options.states, show_progress, show_result)
    status.clear()
    if not proof.cut_short:
        console.print_line(share_sentence())
    console.print_line(proofs.summary(proof))
    if options.json is not None:
        options.json.write_text(proofs.to_json(proof), encoding="utf-8")
    return proof.exit_code()


def prove_kernel(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result, and write them to a file."""
    from fencepost.conformance.cli.files import check_outputs
    from fencepost.conformance.reports import kernel_proofs
    from fencepost.model.proofs.results import kernel_results
    from fencepost.model.protocols import load_part, registered_protocols

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


# --- explore


def explore_classic(options: argparse.Namespace, console: Console) -> int:
    """Search the instance of the options, print each result as it comes, write the files. Raises `UnusableSizes`."""
    from fencepost.conformance.classic.exploration import OutputFiles, run_exploration
    from fencepost.conformance.classic.reports.exploration import SearchDisplay, heading, result_line, summary, to_json
    from fencepost.conformance.cli.files import check_outputs

    instance = instance_of(options)
    instance.setting()
    files = OutputFiles(options.dot, options.graphml, options.picture)
    check_outputs({"--json": options.json, "--dot": files.dot, "--graphml": files.graphml, "--picture": files.picture})
    stderr = console.stderr()
    display = SearchDisplay(stderr, live=stderr.isatty(), limit=instance.limit)

    def show(text: str) -> None:
        display.clear()
        console.print_line(text)

    show(heading(instance))
    result = run_exploration(instance, display, display.show_status, lambda finding: show(result_line(finding)))
    show(summary(result))
    if options.json is not None:
        options.json.write_text(to_json(result), encoding="utf-8")
    omission = files.write(result.exploration, display.show_status)
    if omission:
        show(omission)
    display.clear()
    return result.exit_code()


def instance_of(options: argparse.Namespace) -> "Instance":
    """The instance with the sizes and the behaviour of the options."""
    from fencepost.conformance.classic.exploration import Instance
    from fencepost.model.explore.search import NO_LIMIT

    return Instance(
        members=options.members,
        static=options.static,
        direct=options.direct,
        eager=options.eager,
        heartbeats=not options.no_heartbeats,
        partitions=options.partitions,
        ids=options.ids,
        generations=options.generations,
        requests=options.requests,
        slots=options.slots,
        reduced=not options.full and options.failovers == 0,
        failovers=options.failovers,
        stores_early=options.stores_early,
        limit=NO_LIMIT if options.limit is None else options.limit,
        settle=0 if options.no_liveness else options.settle,
    )


def explore_holes(options: argparse.Namespace, console: Console) -> int:
    """Search for every hole of the text, print each as it comes, and write them to a file."""
    from fencepost.conformance.cli.files import check_outputs
    from fencepost.conformance.reports.holes import exit_code, summarize, to_json
    from fencepost.conformance.reports.holes import explore_holes as search_holes
    from fencepost.model.explore.search import NO_LIMIT
    from fencepost.model.protocols import load_part, registered_protocols

    refuse_options(options, "explore", frozenset({"limit", "json"}))
    check_outputs({"--json": options.json})
    status = console.status_line()

    def show(text: str) -> None:
        status.clear()
        console.print_line(text)

    limit = NO_LIMIT if options.limit is None else options.limit
    entry = registered_protocols()[options.protocol]
    results = search_holes(load_part(entry.hole_searches)(), load_part(entry.holes), limit, status.show, show)
    show(summarize(results))
    if options.json is not None:
        options.json.write_text(to_json(results, options.protocol), encoding="utf-8")
    return exit_code(results)


# --- the commands

_JSON = Option("--json", "F", "write the results as JSON", Path)
COMMANDS = {
    "list": Command(
        run_list,
        (
            Option("patterns", "PATTERN", "JOIN-29 or 'JOIN-*' (default: all)", requirement_pattern, nargs="*"),
            Option("--json", help="as JSON, to standard output"),
        ),
    ),
    "explain": Command(
        run_explain,
        (Option("patterns", "ID", "JOIN-29 or a pattern such as 'JOIN-*'", requirement_pattern, nargs="+"),),
    ),
    "prove": Command(
        partial(run_protocol, "prove"),
        (
            Option("--slots", "N", "places for members", count, 3),
            Option("--partitions", "N", "partitions", count, 3),
            Option("--protocols", "N", "protocols a member may offer", count, 2),
            Option("--seed", "S", "seed of the solver", int, 0),
            Option(
                "--states",
                "N",
                "states to search, per instance, for a reachable counterexample to a refuted theorem",
                count,
                100_000,
            ),
            _JSON,
            choose_protocol("prove"),
        ),
    ),
    "explore": Command(
        partial(run_protocol, "explore"),
        (
            Option("--members", "N", "processes that want to be members", count, 2),
            Option("--partitions", "N", "partitions", count, 1),
            Option("--ids", "N", "member ids that are given out", count, 2),
            Option("--generations", "N", "generations of the group", count, 2),
            Option("--requests", "N", "JoinGroups and SyncGroups of each process", count, 4),
            Option("--slots", "N", "places for members and pending ids", count, 2),
            Option("--static", "N", "number of static members", count, 0),
            Option(
                "--direct",
                "N",
                "number of members that need no member id for their first JoinGroup, as before version 4 (default: "
                "half)",
                whole,
            ),
            Option("--eager", help="members revoke all partitions before they rejoin"),
            Option("--no-heartbeats", help="members send no heartbeats"),
            Option(
                "--failovers",
                "N",
                "how often the coordinator is lost, and another one loads the group from its log",
                whole,
                0,
            ),
            Option(
                "--stores-early",
                help="with --failovers: a generation is stored before JoinGroup is answered, which Kafka does not do",
            ),
            Option("--full", help="search every state, without the reductions"),
            Option("--limit", "N", "end the search after N states", count),
            OneOf(
                (
                    Option("--settle", "N", "liveness: members stop changing after N requests each", count, 1),
                    Option("--no-liveness", help="check safety only"),
                )
            ),
            _JSON,
            Option("--dot", "F", "write the explored graph for Graphviz", Path),
            Option("--graphml", "F", "write the explored graph as GraphML", Path),
            Option("--picture", "F", "write the state diagram, as Markdown", Path),
            choose_protocol("explore"),
        ),
    ),
}
