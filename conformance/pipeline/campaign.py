"""A campaign: the same run with many seeds on many workers; its traces are a corpus, its reports one report.

A seed is done when its batch is committed to the corpus, traces and report together. Whatever ends a campaign, the same
command goes on with the seeds that are not done.
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from heapq import nsmallest
from pathlib import Path

from fencepost.adapters.address import parse_target
from fencepost.adapters.security.authentication import load_security
from fencepost.conformance.analysis.report_builder import merge_reports
from fencepost.conformance.pipeline.merge import MAX_SHOWN_FAILURES
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import load_profile
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.results import Report, RequirementResult
from fencepost.conformance.run import runner
from fencepost.conformance.run.registry import is_bundled, name_of_target, protocol_of_target
from fencepost.traces.events import CLASSIC
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus, Counts, InputFile, InputRow
from fencepost.traces.pipeline.files import (
    Location,
    claim_folder,
    find_files,
    join_location,
    name_below,
    open_parquet,
)
from fencepost.traces.pipeline.ingest import (
    TRACE_SUFFIXES,
    IngestResult,
    IngestTask,
    counts_of,
    ingest_batch,
    write_rows,
)
from fencepost.traces.pipeline.parallel import Spark, as_pipeline_error, core_count, run_parts
from fencepost.traces.pipeline.rows import RowReader
from fencepost.traces.pipeline.tables import INPUTS, TableWriter
from fencepost.traces.pipeline.trace_rows import Run, RunReader

PLAN_FILE = "campaign.json"
SEED_PREFIX = "seed "
SEEDS_PER_CORE = 2
"""How many seeds each core plays before they are committed."""
SEEDS_PER_PART = 64
"""The reports of how many seeds a worker merges."""
ProgressCallback = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Seed:
    """One run of a campaign, which is an input of its corpus."""

    number: int
    size: int = 1

    @property
    def name(self) -> str:
        """The name in the table of inputs."""
        return f"{SEED_PREFIX}{self.number}"


def run_seeds(
    spark: Spark, corpus: Corpus, plan: Plan, seeds: Sequence[int], on_progress: ProgressCallback, at_once: int = 0
) -> Report:
    """Run the plan with every seed that is not done and return the report on all seeds. Raises `PipelineError`."""
    if not seeds:
        raise PipelineError("a campaign needs a seed")
    check_same_campaign(corpus.folder, plan)
    writer, done = corpus.start_writing(), find_reports(corpus)
    left = [Seed(each) for each in seeds if each not in done]
    size = at_once or SEEDS_PER_CORE * core_count(spark)
    begun = len(seeds) - len(left)
    on_progress(begun, len(seeds), f"{begun} seeds done before")
    for start in range(0, len(left), size):
        batch = left[start : start + size]
        ingest_batch(spark, writer, batch, seed_worker(corpus, writer.id, plan), lambda *_: None)
        on_progress(begun + start + len(batch), len(seeds), f"seed {batch[-1].number}")
    return merge_seeds(spark, corpus, seeds)


def merge_seeds(spark: Spark, corpus: Corpus, seeds: Sequence[int]) -> Report:
    """The report on some seeds that are done; workers merge those of a few each. Raises `PipelineError`."""
    places = find_reports(corpus)
    parts = [[places[seed] for seed in seeds[at : at + SEEDS_PER_PART]] for at in range(0, len(seeds), SEEDS_PER_PART)]
    with as_pipeline_error():
        return merge_shortest(run_parts(spark, parts, read_reports))


def read_reports(places: Sequence[Run]) -> Report:
    """The report of all that are in these rows of the table of inputs."""
    reader = RunReader(["report"])
    texts = (batch["report"][0].as_py() for place in places for batch in reader.batches(place))
    return merge_shortest([from_json(text) for text in texts])


def merge_shortest(reports: Sequence[Report]) -> Report:
    """One report of several, with the shortest failures of each requirement; the others are counted."""
    merged = merge_reports(reports)
    return replace(merged, results=tuple(map(keep_shortest, merged.results)))


def keep_shortest(result: RequirementResult) -> RequirementResult:
    """A result with at most `MAX_SHOWN_FAILURES` failures, in their order."""
    shortest = nsmallest(MAX_SHOWN_FAILURES, result.failures, key=lambda each: len(each.schedule))
    kept = set(map(id, shortest))
    failures = tuple(each for each in result.failures if id(each) in kept)
    return replace(result, failures=failures, more_failures=result.more_failures + len(result.failures) - len(failures))


def check_plan(plan: Plan) -> None:
    """Raises `PipelineError` if the plan cannot be a campaign, `ProfileError` for a profile that cannot be read, and
    `TargetError` for an address that cannot be one."""
    profile = load_profile(plan.profile)
    if is_bundled(plan.target):
        return
    if name_of_target(plan.target) == CLASSIC:
        load_security(profile.security, wants_tls=parse_target(plan.target).wants_tls)
    else:
        protocol_of_target(plan.target).make_target(plan.target, profile)
    if profile.can_restart:
        raise PipelineError(
            "a campaign cannot restart its target: other workers are using it (leave out [target] start)"
        )
    if profile.move:
        raise PipelineError("a campaign cannot move groups: those of other workers move too (leave out [target] move)")


def check_same_campaign(folder: Location, plan: Plan) -> None:
    """Raises `PipelineError` if a corpus in this folder is of a campaign with another plan, and as `check_plan` before
    an address is written anywhere."""
    check_plan(plan)
    told = {key: value for key, value in asdict(plan).items() if key not in ("seed", "save", "traces")}
    told = json.loads(json.dumps(told, default=str))
    if claim_folder(join_location(folder, PLAN_FILE), told) != told:
        raise PipelineError(f"{folder} belongs to a campaign with a different target or options")


def find_reports(corpus: Corpus) -> dict[int, Run]:
    """The seeds that are done, each with the row of the table of inputs that has its report."""
    found: dict[int, Run] = {}
    for file in corpus.files(INPUTS):
        names = open_parquet(file).read(["input"])["input"].to_pylist()
        for row, name in enumerate(names):
            if name.startswith(SEED_PREFIX):
                found[int(name.removeprefix(SEED_PREFIX))] = Run(file, row, 1, 0)
    return found


def seed_worker(corpus: Corpus, writer: str, plan: Plan) -> IngestTask[Seed]:
    """The function that plays seeds in a worker; `writer` is the id in the names of its files."""

    def play(seeds: list[Seed]) -> IngestResult:
        result = IngestResult(inputs=[each.name for each in seeds])
        with TableWriter(corpus.data, writer) as tables:
            for each in seeds:
                with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
                    result.counts += play_seed(each, Path(folder), corpus, tables, plan)
        result.files = tables.files
        return result

    return play


def play_seed(seed: Seed, folder: Path, corpus: Corpus, tables: TableWriter, plan: Plan) -> Counts:
    """Run the plan with a seed, write the rows of its traces, which are in `folder` meanwhile, and its report, and
    return the counts of lines."""
    report = asyncio.run(runner.run(replace(plan, seed=seed.number, traces=folder)))
    place, name = f"{folder}/", f"{seed.name}/"
    counts = Counts()
    for each in find_files(folder, TRACE_SUFFIXES):
        reader = RowReader(f"{name}{name_below(each.name, folder)}", each.name)
        write_rows(InputFile(*each), reader, corpus, tables)
        counts += counts_of(reader)
    # The corpus keeps the traces, and their files are removed: the report names what is kept.
    text = to_json(report).replace(json.dumps(place)[1:-1], json.dumps(name)[1:-1])
    tables.add_row(INPUTS, InputRow(seed.name, 0, 0, *astuple(counts))._replace(report=text))
    return counts
