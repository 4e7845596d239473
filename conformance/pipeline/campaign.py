"""A campaign: the same run with many seeds on many workers; its traces are a corpus, its reports one report.

A seed is done when its batch is committed to the corpus, traces and report together. Whatever ends a campaign, the same
command goes on with the seeds that are not done.
"""

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from fencepost.adapters.security.loading import load_security
from fencepost.adapters.wire.target import parse_target
from fencepost.conformance.analysis.report_builder import merge_reports
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.results import Report
from fencepost.conformance.run import runner
from fencepost.traces.pipeline.corpus import Batch, Corpus, CorpusWriter, Counts, InputFile, write_atomically
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import make_ingest_task
from fencepost.traces.pipeline.parallel import Spark, core_count, map_parallel
from fencepost.traces.pipeline.sources import find_traces

PLAN_FILE = "campaign.json"
REPORTS_FOLDER = "reports"
SEEDS_PER_CORE = 2
"""How many seeds each core plays before they are committed."""
ProgressCallback = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Seed:
    """One run of a campaign."""

    number: int
    size: int = 1


@dataclass(frozen=True, slots=True)
class SeedResults:
    """The results of some seeds: files of the corpus, counts of lines, and the report of each seed as JSON."""

    files: Mapping[str, int]
    counts: Counts
    reports: Mapping[int, str]


def run_seeds(
    spark: Spark, corpus: Corpus, plan: Plan, seeds: Sequence[int], on_progress: ProgressCallback, at_once: int = 0
) -> Report:
    """Run the plan with every seed that is not done and return the report on all seeds. Raises `PipelineError`."""
    if not seeds:
        raise PipelineError("a campaign needs a seed")
    check_same_campaign(corpus.folder, plan)
    with corpus.write() as writer:
        done = finished_seeds(corpus)
        left = [Seed(each) for each in seeds if each not in done]
        size = at_once or SEEDS_PER_CORE * core_count(spark)
        begun = len(seeds) - len(left)
        on_progress(begun, len(seeds), f"{begun} seeds done before")
        for start in range(0, len(left), size):
            batch = left[start : start + size]
            run_batch(spark, writer, plan, batch)
            on_progress(begun + start + len(batch), len(seeds), f"seed {batch[-1].number}")
    return merge_reports([from_json(report_path(corpus, seed).read_text(encoding="utf-8")) for seed in seeds])


def run_batch(spark: Spark, writer: CorpusWriter, plan: Plan, seeds: Sequence[Seed]) -> None:
    """Run the plan with some seeds and commit them. Those that another campaign has committed meanwhile are left to
    it."""
    left = list(seeds)
    while left:
        results = map_parallel(spark, left, seed_worker(writer, plan), lambda *_: None)
        for number, report in (item for each in results for item in each.reports.items()):
            write_atomically(report_path(writer.corpus, number), json.loads(report))
        counts = sum((each.counts for each in results), Counts())
        files = {name: bytes for each in results for name, bytes in each.files.items()}
        inputs = {InputFile(manifest_name(each.number), 0, 0): each for each in left}
        taken = writer.commit(Batch(tuple(inputs), files, counts))
        left = [seed for input, seed in inputs.items() if input not in taken] if taken else []


def check_plan(plan: Plan) -> None:
    """Raises `PipelineError` if the plan cannot be a campaign, `ProfileError` for a profile that cannot be read, and
    `TargetError` for an address that cannot be one."""
    profile = load_profile(plan.profile) if plan.profile is not None else Profile()
    if plan.target != BUNDLED:
        load_security(profile.security, wants_tls=parse_target(plan.target).wants_tls)
    if plan.target != BUNDLED and profile.can_restart:
        raise PipelineError(
            "a campaign cannot restart its target: other workers are using it (leave out [target] start)"
        )
    if plan.target != BUNDLED and profile.move:
        raise PipelineError("a campaign cannot move groups: those of other workers move too (leave out [target] move)")


def check_same_campaign(folder: Path, plan: Plan) -> None:
    """Raises `PipelineError` if the folder holds a campaign with another plan, and as `check_plan` before an address is
    written anywhere."""
    check_plan(plan)
    told = {key: value for key, value in asdict(plan).items() if key not in ("seed", "save", "traces")}
    text = json.dumps(told, default=str, sort_keys=True)
    mark = folder / PLAN_FILE
    if not mark.exists():
        write_atomically(mark, text)
    elif json.loads(mark.read_text(encoding="utf-8")) != text:
        raise PipelineError(f"{folder} belongs to a campaign with a different target or options")


def finished_seeds(corpus: Corpus) -> set[int]:
    """The seeds whose batches are committed."""
    names = (each.path for batch in corpus.batches() for each in batch.inputs)
    return {int(name.removeprefix(SEED_PREFIX)) for name in names if name.startswith(SEED_PREFIX)}


SEED_PREFIX = "seed "


def manifest_name(seed: int) -> str:
    """The name of a seed in a manifest."""
    return f"{SEED_PREFIX}{seed}"


def report_path(corpus: Corpus, seed: int) -> Path:
    """Where the report of a seed is kept."""
    folder = corpus.folder / REPORTS_FOLDER
    folder.mkdir(exist_ok=True)
    return folder / f"{seed}.json"


def replace_prefix(prefix: str, other: str, text: str) -> str:
    """The text with another prefix, if it begins with `prefix`."""
    return other + text.removeprefix(prefix) if text.startswith(prefix) else text


def seed_worker(writer: CorpusWriter, plan: Plan) -> Callable[[list[Seed]], SeedResults]:
    """The function that plays seeds in a worker."""

    def play(seeds: list[Seed]) -> SeedResults:
        reports: dict[int, str] = {}
        files: dict[str, int] = {}
        counts = Counts()
        for each in seeds:
            staging = writer.staging / str(each.number)
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(parents=True)
            mine = replace(plan, seed=each.number, traces=staging)
            report = asyncio.run(runner.run(mine))
            inputs = [InputFile.from_path(path) for path in find_traces(staging, staging)]
            place, name = f"{staging}/", f"{manifest_name(each.number)}/"
            found = make_ingest_task(writer, partial(replace_prefix, place, name))(inputs)
            # The corpus keeps the traces, and their files are removed: the report names what is kept.
            reports[each.number] = to_json(report).replace(json.dumps(place)[1:-1], json.dumps(name)[1:-1])
            files |= found.files
            counts += found.counts
            shutil.rmtree(staging)
        return SeedResults(files, counts, reports)

    return play
