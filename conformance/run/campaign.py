"""A campaign: the same run with many seeds on many workers; its traces are a corpus, its reports one report.

A seed is done when its batch is committed to the corpus, traces and report together. Whatever ends a campaign, the same
command goes on with the seeds that are not done.
"""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import load_profile
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.results import Report, RequirementResult, RuleCoverage, Verdict
from fencepost.conformance.run import runner
from fencepost.traces.pipeline.corpus import Batch, Corpus, Counts, Input, write_whole
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import reads
from fencepost.traces.pipeline.parallel import Spark, cores, fan_out
from fencepost.traces.pipeline.sources import recorded

MARK = "campaign.json"
REPORTS = "reports"
AT_ONCE = 2
"""How many seeds each core is given before they are committed."""
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Seed:
    """One run of a campaign."""

    number: int
    size: int = 1


@dataclass(frozen=True, slots=True)
class Won:
    """What came of some seeds: files of the corpus, counts of lines, and a report of each, as JSON."""

    files: tuple[str, ...]
    counts: Counts
    reports: Mapping[int, str]


def campaign(spark: Spark, corpus: Corpus, plan: Plan, seeds: Sequence[int], tell: Tell, at_once: int = 0) -> Report:
    """Run the plan with every seed that is not done, and say what all of them show. Raises `PipelineError`."""
    agree(corpus.folder, plan)
    corpus.sweep()
    done = finished(corpus)
    left = [Seed(each) for each in seeds if each not in done]
    size = at_once or AT_ONCE * cores(spark)
    begun = len(seeds) - len(left)
    tell(begun, len(seeds), f"{begun} seeds done before")
    for start in range(0, len(left), size):
        batch = left[start : start + size]
        won = fan_out(spark, batch, plays(corpus, plan), lambda *_: None)
        for number, report in (item for each in won for item in each.reports.items()):
            write_whole(report_file(corpus, number), json.loads(report))
        counts = sum((each.counts for each in won), Counts())
        files = tuple(name for each in won for name in each.files)
        inputs = tuple(Input(name_of(each.number), 0, 0) for each in batch)
        corpus.commit(Batch(inputs, files, counts))
        tell(begun + start + len(batch), len(seeds), f"seed {batch[-1].number}")
    return merged(from_json(report_file(corpus, each).read_text(encoding="utf-8")) for each in seeds)


def agree(folder: Path, plan: Plan) -> None:
    """Refuse what cannot be one campaign. Raises `PipelineError`."""
    if plan.target != BUNDLED and plan.profile is not None and load_profile(plan.profile).can_restart:
        raise PipelineError("a campaign cannot restart its target: others are at work on it (leave out [target] start)")
    told = {key: value for key, value in asdict(plan).items() if key not in ("seed", "save", "traces")}
    text = json.dumps(told, default=str, sort_keys=True)
    mark = folder / MARK
    if not mark.exists():
        write_whole(mark, text)
    elif json.loads(mark.read_text(encoding="utf-8")) != text:
        raise PipelineError(f"{folder} is another campaign: its target or options are not these")


def finished(corpus: Corpus) -> set[int]:
    """The seeds that are done."""
    names = (each.path for batch in corpus.batches() for each in batch.inputs)
    return {int(name.removeprefix(PREFIX)) for name in names if name.startswith(PREFIX)}


PREFIX = "seed "


def name_of(seed: int) -> str:
    """What a manifest calls a seed."""
    return f"{PREFIX}{seed}"


def report_file(corpus: Corpus, seed: int) -> Path:
    """Where the report of a seed is kept."""
    folder = corpus.folder / REPORTS
    folder.mkdir(exist_ok=True)
    return folder / f"{seed}.json"


def plays(corpus: Corpus, plan: Plan) -> Callable[[list[Seed]], Won]:
    """What a worker does with its seeds."""

    def play(seeds: list[Seed]) -> Won:
        reports: dict[int, str] = {}
        files: list[str] = []
        counts = Counts()
        for each in seeds:
            staging = corpus.folder / "staging" / str(each.number)
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(parents=True)
            mine = replace(plan, seed=each.number, traces=staging)
            report = asyncio.run(runner.run(mine, lambda _: None))
            receipt = reads(corpus)([Input.of(path) for path in recorded(staging, staging)])
            reports[each.number] = to_json(report)
            files += receipt.files
            counts += receipt.counts
            shutil.rmtree(staging)
        return Won(tuple(files), counts, reports)

    return play


WEIGHT = (
    Verdict.FAIL,
    Verdict.KNOWN,
    Verdict.PASS,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_OBSERVED,
    Verdict.UNSUPPORTED,
)
"""Which verdict of several counts: as in one run, what was seen once to hold and never to fail holds."""


def merged(reports: Iterable[Report]) -> Report:
    """One report of all. Its seed is the first one's."""
    found = list(reports)
    if not found:
        raise PipelineError("a campaign needs a seed")
    by_id: dict[str, list[RequirementResult]] = {}
    rules: dict[str, RuleCoverage] = {}
    for report in found:
        for result in report.results:
            by_id.setdefault(result.id, []).append(result)
        for name, rule in report.rules.items():
            seen = rules[name].seen if name in rules else 0
            rules[name] = RuleCoverage(seen + rule.seen, rule.requirements)
    return replace(
        found[0],
        results=tuple(map(weighed, by_id.values())),
        rules=rules,
        schedules=sum(report.schedules for report in found),
        events=sum(report.events for report in found),
        seconds=round(sum(report.seconds for report in found), 3),
        cut_short=any(report.cut_short for report in found),
        coverage=None,
    )


def weighed(results: Sequence[RequirementResult]) -> RequirementResult:
    """One result of several on the same requirement."""
    first = min(results, key=lambda each: WEIGHT.index(each.verdict))
    failures = tuple(failure for each in results for failure in each.failures)
    return replace(first, checks=sum(each.checks for each in results), failures=failures)
