"""The commands that show the model: `list` and `explain` requirements, `prove` theorems, `explore` small groups."""

import argparse
import json
from functools import partial
from pathlib import Path

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.options import (
    LOUDNESS,
    Command,
    OneOf,
    Option,
    choose_protocol,
    count,
    requirement_pattern,
    run_protocol,
    whole,
)

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
            from fencepost.conformance.clients.protocol import client_protocol  # takes long, and few ask for it

            clients = client_protocol(is_driven=True)
            names = [one.name for one in clients.scenarios if each.id in one.requirements]
            text = explain_requirement(each, specification, clients.needs, names, width=width)
        else:
            text = explain_requirement(each, specification, coordinator, (), holes_that_break(each), width=width)
        console.print(("\n" if number else "") + text)
    return ExitCode.CONFORMANT


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
            Option("--theorem", "T", "one theorem, such as T13, proved from all others"),
            Option("--seed", "S", "seed of the solver", int, 0),
            Option(
                "--states",
                "N",
                "states to search, per instance, for a reachable counterexample to a refuted theorem",
                count,
                100_000,
            ),
            _JSON,
            LOUDNESS,
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
            LOUDNESS,
            choose_protocol("explore"),
        ),
    ),
}
