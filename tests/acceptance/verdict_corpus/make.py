# mypy: ignore-errors
# The modules imported here are those of commit 79b4ef4; the tree at hand may not have them any more.
"""Make traces with the code of commit 79b4ef4 and have its judge judge them.

    PYTHONPATH=OLD/.src:OLD python -P make.py FOLDER [--jobs N]     make everything
    PYTHONPATH=OLD/.src:OLD python -P make.py FOLDER --judge        judge the traces that are in FOLDER/traces

OLD is a worktree of that commit. FOLDER gets `traces/NAME.jsonl.gz`, `verdicts.jsonl.gz` (a line for each trace and
way of judging it) and, when all is done, `manifest.json`. Equal seeds make equal traces. A trace that takes too long to
play or to judge is left out, and the manifest says so.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from fencepost.adapters.virtual import run_virtual
from fencepost.conformance.bundled_run import BUNDLED_SETTINGS
from fencepost.conformance.execution import play
from fencepost.conformance.schedules.generation import Ground, draw
from fencepost.conformance.schedules.player import scenario_of
from fencepost.conformance.touring import chosen
from fencepost.conformance.zoo.hunting import plays, run_of
from fencepost.conformance.zoo.limits import Stuck, at_most
from fencepost.conformance.zoo.methods import SCENARIOS
from fencepost.conformance.zoo.record import BUGS, recorded
from fencepost.conformance.zoo.shared import unjudged
from fencepost.conformance.zoo.specimens import known, specimen
from fencepost.conformance.zoo.target import MortalTarget
from fencepost.traces.events import Event, Kind, Order
from fencepost.traces.format import open_trace, write_trace
from fencepost.traces.judge.judge import Judge, judge
from tests.traces.chaos import random_trace
from tests.traces.clients import seen_by_clients
from tests.traces.pipeline.altered import altered_trace

COMMIT = "79b4ef4"
CHUNK = 20
"""How many traces one task makes."""
SCHEDULE_CHUNKS, TOURS, RANDOM_CHUNKS = 30, 200, 15
SCENARIOS_OF_BUG, SCENARIOS_BESIDE = 12, 10
"""How many scenarios a bug is tried with: those about what it breaks, and others."""
PLAY_SECONDS, JUDGE_SECONDS = 20.0, 3.0
STEPS, PAUSE_MS, TRAVEL_MS = 80, 10, 12


# --- verdicts


def canonical(verdict):
    """The verdict in plain data, whatever the names of classes and fields are."""
    return {
        "violations": in_order(map(violation, verdict.faults)),
        "checks": in_order(map(check, verdict.evidence)),
        "rules": dict(sorted(verdict.rules.items())),
        "transitions": sorted([str(each), count] for each, count in verdict.transitions.items()),
        "differences": dict(sorted(verdict.decisions.items())),
        "inconclusive": sorted(verdict.inconclusive),
        "events": verdict.events,
    }


def violation(fault):
    return {
        "request": fault.sequence,
        "group": fault.group,
        "api": fault.api,
        "fields": list(fault.fields),
        "observed": fault.observed,
        "expected": list(fault.allowed),
        "rule": fault.rule,
        "condition": fault.guard,
        "requirements": list(fault.requirements),
        "signature": fault.kind,
        "tolerated": fault.waived,
    }


def check(evidence):
    return {
        "requirement": evidence.requirement,
        "request": evidence.sequence,
        "outcome": evidence.standing.value,
        "note": evidence.note,
        "violation": None if evidence.fault is None else violation(evidence.fault),
    }


def in_order(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def judge_passes(header, events):
    """As runs on a target judge."""
    return judge(header, events)


def judge_likely(header, events):
    """As runs on a target judge random schedules."""
    return judge(header, events, likely=True)


def judge_stream(header, events):
    """As files are judged."""
    return Judge(header).read(iter(events))


WAYS = {"judge": judge_passes, "likely": judge_likely, "stream": judge_stream}


def lines_of(path):
    """A line for each way of judging a trace that does not take too long."""
    name = path.name.removesuffix(".jsonl.gz")
    header, events = open_trace(path)
    events, lines = tuple(events), []
    for way, judge_by in WAYS.items():
        if way == "likely" and header.order is Order.TOTAL:
            continue
        try:
            with at_most(JUDGE_SECONDS):
                lines.append({"trace": name, "way": way, "verdict": canonical(judge_by(header, events))})
        except Stuck:
            continue
    return lines


# --- traces


def scenarios(start):
    """Scenarios on the bundled coordinator."""
    for scenario in list(plays(SCENARIOS))[start : start + CHUNK]:
        yield from played(MortalTarget, 0, scenario, f"scenario.{scenario.name}")


def tours(start):
    """Tours through the transitions of a small group."""
    for tour in chosen(BUNDLED_SETTINGS, TOURS, 0)[start : start + CHUNK]:
        yield from played(MortalTarget, 0, tour, f"tour.{tour.name}")


def schedules(chunk):
    """Random schedules on the bundled coordinator."""
    for drawn in draw(Ground(BUNDLED_SETTINGS, cuts=True), 1, chunk, CHUNK):
        yield from played(MortalTarget, 0, scenario_of(drawn.schedule), drawn.schedule.name)


def bug_schedules(name):
    """Random schedules on a coordinator with a bug, among them the one that it is known to be found by."""
    row = next(row for row in recorded(BUGS).rows if row.name == name)
    seed, chunk = (row.seed, row.chunk) if row.found_by == "schedules" else (1, 0)
    with specimen(name).applied() as make_target:
        for drawn in draw(Ground(BUNDLED_SETTINGS), seed, chunk, CHUNK):
            schedule = drawn.schedule
            yield from played(make_target, specimen(name).grace, scenario_of(schedule), f"{name}.{schedule.name}")


def bug_scenarios(name):
    """Scenarios on a coordinator with a bug: about what it breaks, and others; every second is also cut."""
    row = next(row for row in recorded(BUGS).rows if row.name == name)
    source, about = random.Random(name), {row.requirement, *row.breaks}
    everything = list(plays(SCENARIOS))
    known_by = [one for one in everything if one.name in row.shortest]
    mine = [one for one in everything if about & set(one.requirements) and one not in known_by]
    others = [one for one in everything if one not in mine and one not in known_by]
    mine = source.sample(mine, min(len(mine), SCENARIOS_OF_BUG))
    with specimen(name).applied() as make_target:
        for number, scenario in enumerate([*known_by, *mine, *source.sample(others, SCENARIOS_BESIDE)]):
            for trace in played(make_target, specimen(name).grace, scenario, f"{name}.{scenario.name}"):
                yield trace
                if number % 2 == 0:
                    yield cut(*trace, source)


def random_total(chunk):
    """Random schedules of another kind, seen at the coordinator."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        yield f"random.{seed}", *random_trace(random.Random(seed), STEPS)


def random_intervals(chunk):
    """The same seen by clients, whole and without the front."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        header, events = random_trace(random.Random(seed), STEPS // 3, PAUSE_MS)
        header = replace(header, grace=2 * TRAVEL_MS, order=Order.INTERVALS)
        header, events = seen_by_clients(header, well_formed(header, events), random.Random(seed), TRAVEL_MS)
        trace = f"intervals.{seed}", header, events
        yield trace
        yield cut(*trace, random.Random(seed))


def random_altered(chunk):
    """Random traces with answers made wrong."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        header, events = altered_trace(seed)
        yield f"altered.{seed}", header, tuple(events)


def played(make_target, grace, scenario, name):
    """The trace of one play; none if it takes too long."""

    async def perform():
        run = run_of(make_target, grace)
        target = make_target(run.settings_for(scenario))
        description = await target.open()
        try:
            return await play(
                scenario, target, description, scenario.name, grace=grace, restart=target.restart, judging=unjudged
            )
        finally:
            await target.close()

    try:
        with at_most(PLAY_SECONDS):
            done = run_virtual(perform())
    except Stuck:
        return
    yield name, done.header, well_formed(done.header, done.events)


def well_formed(header, events):
    """The events as the format allows them: a connection is lost once, and clients see nothing of it after that."""
    kept, lost = [], set()
    for event in events:
        if event.of in lost and (
            event.kind is Kind.FAULT or (event.kind is Kind.ANSWER and header.order is not Order.TOTAL)
        ):
            continue
        if event.kind is Kind.FAULT and event.of is not None:
            lost.add(event.of)
        kept.append(event)
    return tuple(kept)


def cut(name, header, events, source):
    """The trace from a random event on, as a late recorder sees it: without responses to earlier requests."""
    if len(events) < 6:
        return f"{name}.cut", header, events
    at = source.randrange(2, len(events) // 2)
    kept = [event for event in events[:at] if event.kind is Kind.INTERNAL and event.api == "topics"]
    kept = [event for event in kept if event.sequence < events[at].sequence - 1]
    reason = {"reason": "the recording begins"}
    kept.append(Event(events[at].sequence - 1, events[at].time, 0, "", Kind.INTERNAL, "unknown", 0, reason))
    asked = set()
    for event in events[at:]:
        if event.kind is Kind.REQUEST:
            asked.add(event.sequence)
        if event.of is None or event.of in asked:
            kept.append(event)
    return f"{name}.cut", header, tuple(kept)


# --- everything


def tasks():
    """All that is to be made: a function of this module and what it is called with."""
    for bug in known():
        yield "bug_schedules", bug
        yield "bug_scenarios", bug
    yield from (("scenarios", start) for start in range(0, len(list(plays(SCENARIOS))), CHUNK))
    yield from (("tours", start) for start in range(0, TOURS, CHUNK))
    yield from (("schedules", chunk) for chunk in range(SCHEDULE_CHUNKS))
    for family in ("random_total", "random_intervals", "random_altered"):
        yield from ((family, chunk) for chunk in range(RANDOM_CHUNKS))


def do(task):
    """Make the traces of one task and judge them: its family, its verdicts, and what was left out."""
    folder, family, given = task
    lines, left_out = [], []
    for name, header, events in globals()[family](given):
        path = folder / "traces" / f"{name}.jsonl.gz"
        write_trace(path, header, events)
        if found := lines_of(path):
            lines += found
        else:
            path.unlink()
            left_out.append(name)
    return family, lines, left_out


def make(folder, jobs):
    """Make everything."""
    (folder / "traces").mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").unlink(missing_ok=True)
    counts, left_out = Counter(), []
    todo = [(folder, *task) for task in tasks()]
    with get_context("spawn").Pool(jobs) as pool, writer(folder) as out:
        for number, (family, lines, out_of_time) in enumerate(pool.imap(do, todo), 1):
            out.writelines(json.dumps(line, sort_keys=True) + "\n" for line in lines)
            counts[family] += len({line["trace"] for line in lines})
            left_out += out_of_time
            if number % 20 == 0:
                print(f"{number} of {len(todo)} tasks, {counts.total()} traces", flush=True)
    manifest = {"commit": COMMIT, "traces": counts.total(), "families": counts, "left_out": left_out}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def writer(folder):
    """Where the verdicts go."""
    return gzip.open(folder / "verdicts.jsonl.gz", "wt", encoding="ascii", compresslevel=6)


def judge_again(folder):
    """Judge the traces that are there."""
    with writer(folder) as out:
        for path in sorted((folder / "traces").glob("*.jsonl.gz")):
            lines = lines_of(path)
            out.writelines(json.dumps(line, sort_keys=True) + "\n" for line in lines)
            if not lines:
                print(f"{path.name} takes too long: remove it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes (default: 1)")
    parser.add_argument("--judge", action="store_true", help="judge the traces that are there")
    given = parser.parse_args()
    if given.judge:
        judge_again(given.folder)
    else:
        make(given.folder, given.jobs)


if __name__ == "__main__":
    main()
