"""`fencepost prove`: the theorems of the model, a line each."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.argument_types import count
from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.protocols import add_protocol, run_protocol


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost prove`."""
    parser.add_argument("--slots", metavar="N", type=count, default=3, help="places for members (default: 3)")
    parser.add_argument("--partitions", metavar="N", type=count, default=3, help="partitions (default: 3)")
    parser.add_argument(
        "--protocols", metavar="N", type=count, default=2, help="protocols a member may offer (default: 2)"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the solver (default: 0)")
    parser.add_argument(
        "--states",
        metavar="N",
        type=count,
        default=100_000,
        help="states to search, per instance, for a reachable counterexample to a refuted theorem (default: 100000)",
    )
    parser.add_argument("--json", metavar="F", type=Path, help="write the results as JSON")
    add_protocol(parser, "prove")


def run(options: argparse.Namespace, console: Console) -> int:
    """Prove the theorems about the protocol that the options name."""
    return run_protocol(options, console, "prove")


def run_classic(options: argparse.Namespace, console: Console) -> int:
    """Prove every theorem, print each result as it comes, and write them to a file."""
    from fencepost.conformance.cli.outputs import check_outputs
    from fencepost.conformance.reports.classic import proofs
    from fencepost.model.proofs.classic.induction import ProofSize
    from fencepost.model.proofs.classic.proof_share import share_sentence

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
