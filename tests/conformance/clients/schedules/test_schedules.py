"""Random schedules for clients: they are reproducible, the reference client keeps all requirements in them, and what a
faulty client does wrong is found, shrunk, saved and replayed."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fencepost.conformance.classic.clients.schedules.moves import KINDS
from fencepost.conformance.classic.clients.schedules.protocol import (
    HARD_ERRORS,
    MILD_ERRORS,
    ClassicClientSchedules,
    draw_moves,
)
from fencepost.conformance.classic.zoo.client_stand import PROTOCOL
from fencepost.conformance.classic.zoo.client_stand import make_bench as make_reference_bench
from fencepost.conformance.classic.zoo.clients.reference import KINDS as KINDS_OF_CLIENTS
from fencepost.conformance.clients.protocol import schedule_body, schedule_in
from fencepost.conformance.clients.run import ClientRun, replay_client
from fencepost.conformance.plan import Plan, ReplayOutcome
from fencepost.conformance.results import ExitCode
from fencepost.conformance.run.schedule import Move, Schedule
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.classic.catalogue.client import MEMBER_RULES
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import TraceError
from tests.support.client_scenarios import COOPERATIVE, EAGER
from tests.support.client_schedules import make_bench, make_play, protocol_for
from tests.support.faulty_clients import STATIC
from tests.support.wire_client import Tamper

SETTINGS = {"eager": EAGER, "cooperative": COOPERATIVE, "static": STATIC}


def run_of(tamper: Tamper | None, **options: object) -> ClientRun:
    """A run of the first scenario, which shows what the client is, and of a few schedules."""
    plan = Plan("reference", ("MEMBER-1*",), **options)  # type: ignore[arg-type]
    protocol = replace(protocol_for(True), scenarios=protocol_for(True).scenarios[:1])
    return ClientRun(plan, ("reference",), protocol, make_play(EAGER, tamper, True), at_once=1, is_driven=True)


# -- drawing ----------------------------------------------------------------------------------------------------------


def test_a_seed_draws_the_same_schedules() -> None:
    protocol = ClassicClientSchedules(is_driven=True)
    first, again, other = (protocol.generate(seed, 0, 5) for seed in (1, 1, 2))
    assert first == again != other
    assert len({each.schedule.name for each in (*first, *other)}) == 10


def test_schedules_hold_every_kind_of_move_and_every_error() -> None:
    moves = [move for seed in range(400) for move in draw_moves(Random(seed), is_driven=True)]
    assert {move.kind for move in moves} == KINDS.keys()
    drawn = {(move.get("api"), move.get("error")) for move in moves if move.kind == "refuse"}
    assert drawn >= {
        (api, error.name) for errors in (MILD_ERRORS, HARD_ERRORS) for api in errors for error in errors[api]
    }


def test_a_client_without_a_driver_gets_no_error_that_it_may_end_by() -> None:
    moves = [move for seed in range(400) for move in draw_moves(Random(seed), is_driven=False)]
    drawn = {(str(move.get("api")), str(move.get("error"))) for move in moves if move.kind == "refuse"}
    assert drawn <= {(api, error.name) for api, errors in MILD_ERRORS.items() for error in errors} | {
        ("Heartbeat", "REBALANCE_IN_PROGRESS")
    }
    assert not {move.kind for move in moves} & {"commit", "idle", "poll", "pause", "resume", "seek", "subscribe"}


def test_a_trace_has_its_schedule() -> None:
    schedule = Schedule("some", (), draw_moves(Random(3), is_driven=True))
    event = Event(0, 0, 0, "", Kind.INTERNAL, "schedule", 0, schedule_body(schedule))
    assert schedule_in([event]) == schedule
    assert schedule_in([]) is None


@pytest.mark.parametrize("body", [{}, {"name": "a", "moves": [{"kind": "wait"}]}, {"name": "a", "moves": 3}])
def test_a_schedule_that_cannot_be_read_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the schedule in event 7 cannot be read"):
        schedule_in([Event(7, 0, 0, "", Kind.INTERNAL, "schedule", 0, body)])


# -- playing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_driven", [True, False], ids=["driven", "undriven"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_reference_client_keeps_all_requirements(settings: ClientSettings, is_driven: bool) -> None:
    bench = make_bench(settings, is_driven=is_driven)
    for generated in bench.protocol.generate(5, 0, 6):
        run = bench.play(generated.schedule)
        assert (run.verdict.violations, run.blocked, run.misconduct) == ((), "", ""), generated.schedule


@pytest.mark.acceptance
@pytest.mark.parametrize("is_driven", [True, False], ids=["driven", "undriven"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_reference_client_keeps_all_requirements_in_many(settings: ClientSettings, is_driven: bool) -> None:
    bench = make_bench(settings, is_driven=is_driven)
    for batch in range(50):
        for generated in bench.protocol.generate(6, batch, 20):
            run = bench.play(generated.schedule)
            assert (run.verdict.violations, run.blocked, run.misconduct) == ((), "", ""), generated.schedule


ONCE_BLAMED = (
    "schedule-2-0-1", "schedule-2-0-9", "schedule-2-0-18", "schedule-2-0-19", "schedule-2-0-20", "schedule-3-0-0",
    "schedule-3-0-17", "schedule-4-0-13", "schedule-4-0-17", "schedule-5-0-8", "schedule-6-0-1", "schedule-8-0-9",
    "schedule-7002-0-2",
)  # fmt: skip
"""Schedules in which the judge once blamed the reference client, or a client that does the same: an error of another
commit, a commit that blocks for longer than the poll interval, Metadata that was on its way, responses on a closed
connection, buffers of before a rebalance, a doubtful connection, a fenced follower, a static member that left silently,
a membership that is kept, and a commit that was given up."""


@pytest.mark.parametrize("kind", KINDS_OF_CLIENTS)
def test_the_reference_client_is_not_blamed_again(kind: str) -> None:
    bench = make_reference_bench(KINDS_OF_CLIENTS[kind])
    for name in ONCE_BLAMED:
        seed = int(name.split("-")[1])
        chosen = next(each for each in PROTOCOL.generate(seed, 0, 25) if each.schedule.name == name)
        assert bench.play(chosen.schedule).verdict.violations == (), name


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", KINDS_OF_CLIENTS)
def test_the_reference_client_is_not_blamed_in_seeds_of_mutants(kind: str) -> None:
    bench = make_reference_bench(KINDS_OF_CLIENTS[kind])
    for seed in range(1, 9):
        for each in PROTOCOL.generate(seed, 0, 25):
            assert bench.play(each.schedule).verdict.violations == (), each.schedule.name


def test_a_run_tells_which_rules_of_the_model_it_reached() -> None:
    bench = make_bench()
    rules: set[str] = set()
    for generated in bench.protocol.generate(1, 0, 6):
        rules |= bench.play(generated.schedule).verdict.rules.keys()
    assert rules <= MEMBER_RULES.keys()
    assert len(rules) > 60


def test_moves_can_be_played_in_any_order() -> None:
    """As shrinking does: without a start, and with moves whose options are gone."""
    bench = make_bench()
    protocol = bench.protocol
    moves = draw_moves(Random(2), is_driven=True)
    for kept in (moves[::-1], tuple(move for move in moves if move.kind != "start")):
        bare = tuple(type(move)(move.kind, move.who) for move in kept)
        run = bench.play(Schedule("any", (), bare))
        assert (run.verdict.violations, run.blocked, run.misconduct) == ((), "", "")
        assert [each for move in bare for each in protocol.simpler_moves(move)]


# -- whole runs -------------------------------------------------------------------------------------------------------


async def test_a_run_without_violations_counts_its_schedules() -> None:
    report = await run_of(None, schedules=3).run()
    assert report.exit_code() is ExitCode.CONFORMANT
    assert report.schedules == 4
    assert "--schedules 3" in " ".join(report.provenance.plan.command)  # type: ignore[union-attr]


async def test_a_trace_without_a_schedule_names_a_scenario(tmp_path: Path) -> None:
    run = await make_play(EAGER, None, True).play(protocol_for(True).scenarios[0])
    path = save(tmp_path, run)
    result = await replay_client(path, make_play(EAGER, None, True), protocol_for(True))
    assert result.outcome is ReplayOutcome.INCONCLUSIVE and "nothing fails in the trace" in result.note


async def test_a_trace_that_names_nothing_is_refused(tmp_path: Path) -> None:
    run = await make_play(EAGER, None, True).play(protocol_for(True).scenarios[0])
    run.header.implementation["scenario"] = "unheard-of"  # type: ignore[index]
    with pytest.raises(TraceError, match="no scenario named 'unheard-of'"):
        await replay_client(save(tmp_path, run), make_play(EAGER, None, True), protocol_for(True))


def save(folder: Path, run: ScenarioRun) -> Path:
    from fencepost.conformance.run.stream import save_trace

    path = folder / "t.jsonl"
    save_trace(path, run.header, run.events)
    return path


def test_an_evicted_client_that_does_not_know_it_gives_nothing_up() -> None:
    """The coordinator forgets the client, and gives what it has to another member before the client is told."""
    moves = (
        Move("start"),
        Move("wait", 0, (("ms", 2_500),)),
        Move("delay", 0, (("api", "OffsetFetch"), ("ms", 2_500))),
        Move("refuse", 0, (("api", "Heartbeat"), ("error", "REBALANCE_IN_PROGRESS"))),
        Move("wait", 0, (("ms", 1_000),)),
        Move("forget"),
        Move("wait", 0, (("ms", 1_500),)),
        Move("move"),
        Move("join", 1),
        Move("wait", 0, (("ms", 1_500),)),
        Move("evict", 0, (("api", "Heartbeat"),)),
        Move("wait", 0, (("ms", 4_000),)),
    )
    assert "CALLBACK-14" not in make_bench().violated_by(Schedule("forgotten", (), moves))
