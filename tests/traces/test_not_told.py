"""A setting that nobody told may excuse a response, and never accuses one."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import NewTarget
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.settings import Settings, without_guesses
from fencepost.traces.files.trace_files import TraceError, open_trace, write_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

STABLE = next(each for each in ALL if each.name == "heartbeat-in-stable")


def play(scenario: Scenario, **settings: int) -> ScenarioRun:
    """A play on a target with other settings than those of the bundled one."""
    has = replace(BUNDLED_SETTINGS, **settings)
    return run_virtual(NewTarget(lambda: InProcessTarget(has)).play(scenario, "group"))


def judge_as(run: ScenarioRun, not_told: frozenset[str], **settings: int) -> TraceVerdict:
    """The verdict on a run by other settings than the target's, some of which are guesses."""
    header = replace(run.header, settings=replace(run.header.settings, **settings), not_told=not_told)
    return judge(header, run.events)


async def form_and_shrink(group: ScenarioContext) -> None:
    """Three members come one after the other, and the first leaves."""
    first, *others = [group.member(name) for name in "ABC"]
    calls = []
    for member in (first, *others):
        calls.append(await group.join_new(member))
        await group.sleep(group.short_pause)
    await calls[0]
    await group.leave(first)
    await group.sleep(2_000)


@pytest.mark.parametrize("scenario", [STABLE, Scenario("shrinking", (), form_and_shrink)], ids=lambda each: each.name)
@pytest.mark.parametrize(("has", "guessed"), [(0, 3_000), (0, 200), (600, 3_000), (600, 200), (600, 0), (3_000, 0)])
def test_a_delay_that_was_guessed_accuses_nobody(scenario: Scenario, has: int, guessed: int) -> None:
    run = play(scenario, initial_rebalance_delay=has)
    assert not run.verdict.violations
    assert judge_as(run, frozenset(), initial_rebalance_delay=guessed).violations
    verdict = judge_as(run, frozenset({"initial_rebalance_delay"}), initial_rebalance_delay=guessed)
    assert not verdict.violations and not verdict.inconclusive


def session(milliseconds: int) -> Scenario:
    """A member with this session timeout joins."""

    async def join(group: ScenarioContext) -> None:
        await group.join(group.member("A"), session_timeout_ms=milliseconds)

    return Scenario("session", (), join)


@pytest.mark.parametrize("milliseconds", [100, 90_000])
def test_bounds_that_were_guessed_accuse_neither_admission_nor_refusal(milliseconds: int) -> None:
    wide = {"min_session_timeout": 1, "max_session_timeout": 10**6}
    narrow = {"min_session_timeout": 500, "max_session_timeout": 60_000}
    admitted, refused = play(session(milliseconds), **wide), play(session(milliseconds), **narrow)
    assert judge_as(admitted, frozenset(), **narrow).violations
    assert judge_as(refused, frozenset(), **wide).violations
    assert not judge_as(admitted, frozenset(wide), **narrow).violations
    verdict = judge_as(refused, frozenset(wide), **wide)
    assert not verdict.violations and "which nobody told" in verdict.inconclusive[0]


async def leave_for_good(group: ScenarioContext) -> None:
    """The only member of a group leaves, and the group is looked at."""
    (member,) = await group.form_stable_group(group.member("A"))
    await group.leave(member)
    await group.sleep(5_000)
    await group.describe_groups()


def test_an_empty_group_may_be_gone_at_any_time_if_no_clean_up_was_told() -> None:
    name = "retention_check_interval"
    run = play(Scenario("leaving", (), leave_for_good), retention_check_interval=1_000)
    assert not run.verdict.violations
    late = play(Scenario("leaving", (), leave_for_good), retention_check_interval=60_000)
    assert judge_as(late, frozenset(), retention_check_interval=100).violations
    for each in (run, late):
        for guessed in (100, 20_000, 600_000):
            assert not judge_as(each, frozenset({name}), retention_check_interval=guessed).violations


def test_the_most_lenient_value_takes_the_place_of_a_guess() -> None:
    told = Settings()
    assert without_guesses(told, ()) == told
    assert without_guesses(told, {"max_group_size", "offsets_retention"}) == replace(told, max_group_size=2**31 - 1)


def test_a_trace_says_what_was_not_told(tmp_path: Path) -> None:
    run = play(STABLE)
    header = replace(run.header, not_told=frozenset({"max_group_size"}))
    write_trace(tmp_path / "t.jsonl", header, run.events)
    assert open_trace(tmp_path / "t.jsonl")[0] == header
    (tmp_path / "u.jsonl").write_text((tmp_path / "t.jsonl").read_text().replace('max_group_size"]', 'depth"]'))
    with pytest.raises(TraceError, match="unknown key 'depth' in 'not_told'"):
        open_trace(tmp_path / "u.jsonl")
