"""Thresholds of robustness: bad inputs and odd servers, each tried with a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.acceptance.framework import Check, Figure, at_least, exactly
from tests.acceptance.odd_clients import check_odd_clients
from tests.support.bad_inputs.bad_input import BadInput, broken_promises, prepare_folder, run_process
from tests.support.bad_inputs.registry import KINDS
from tests.support.odd_servers import ODD_SERVERS, serve_oddly, server_case

JOBS = 2
MIN_INPUTS, MIN_SERVERS = 300, 12


def try_input(folder: Path, numbered: tuple[int, BadInput]) -> tuple[str, list[str]]:
    """The name of a bad input, and what was not kept."""
    number, case = numbered
    place = folder / str(number)
    place.mkdir(parents=True)
    prepare_folder(case, place)
    return case.name, broken_promises(case, run_process(case.words, place), place)


def try_server(folder: Path, name: str, command: str) -> tuple[str, list[str]]:
    """The name of an odd server with a command, and what was not kept."""
    place = folder / f"{command}-{name}"
    place.mkdir(parents=True)
    with serve_oddly(name) as address:
        case = server_case(name, command, address)
        prepare_folder(case, place)
        outcome = run_process(case.words, place)
    broken = broken_promises(case, outcome, place)
    if ODD_SERVERS[name].reason not in outcome.err:
        broken.append(f"the reason is not named: {outcome.err.strip()[-120:]}")
    return case.name, broken


def count_kept(what: str, results: Sequence[tuple[str, list[str]]], least: int) -> Iterator[Figure]:
    """How many were tried, and those that were not dealt with as promised."""
    yield at_least(what, len(results), least)
    failed = [(name, broken) for name, broken in results if broken]
    yield exactly("not one clear line and exit code 2, or something lost", len(failed), 0)
    for name, broken in failed[:10]:
        yield Figure(name, "; ".join(broken), "", False)


def check_inputs(folder: Path) -> Iterator[Figure]:
    """Every bad input of every kind."""
    results: list[tuple[str, list[str]]] = []
    with ThreadPoolExecutor(JOBS) as pool:
        for kind, make in KINDS.items():
            cases = list(make())
            results += pool.map(partial(try_input, folder / kind), enumerate(cases))
            yield at_least(f"{kind}", len(cases), 1)
    yield from count_kept("bad inputs", results, MIN_INPUTS)


def check_servers(folder: Path) -> Iterator[Figure]:
    """Every odd server with every command that connects to one."""
    tries: list[Callable[[], tuple[str, list[str]]]] = [
        partial(try_server, folder, name, command)
        for name, server in ODD_SERVERS.items()
        for command in server.commands()
    ]
    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(lambda attempt: attempt(), tries))
    yield at_least("odd servers", len(ODD_SERVERS), MIN_SERVERS)
    yield from count_kept("commands tried on them", results, MIN_SERVERS)


CHECKS = (
    Check("inputs", "a bad input gets one line and exit code 2, and nothing is lost", check_inputs),
    Check("servers", "so does a server that is no broker, or an odd one", check_servers),
    Check("clients", "a program that is no client, or no good one, is told in a line", check_odd_clients),
)
