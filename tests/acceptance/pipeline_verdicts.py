"""The pipeline's commands beside `fencepost judge` on the same traces: through both formats, a topic, and `watch`."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace, write_trace
from fencepost.traces.judge.judge import Judge
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.stream import findings_log, new_findings
from fencepost.traces.verdict import initial_violations
from tests.acceptance.checks.conformance import command_environment, running_target
from tests.acceptance.framework import ROOT, Figure, MeasurementError, exactly, without_threshold
from tests.support.altered_traces import altered_trace
from tests.support.trace_topics import create_topic, produce_records, records_of

TRACE_COUNT, DAMAGED_EVERY = 1_000, 20
FILE_DAMAGE = ("cut", "empty")
"""What damages a file, and not its lines: no record of a topic shows it."""
DAMAGE = ("bad line", "malformed message", "byte order mark", *FILE_DAMAGE)
COMPARED = ("id", "verdict", "note", "checks", "causes")
"""What is compared of a requirement, beside the number of its failures."""

Violations = Counter[tuple[str, int, str]]


def damage_of(seed: int) -> str:
    """How the trace of a seed is damaged; "" if it is not."""
    return DAMAGE[seed // DAMAGED_EVERY % len(DAMAGE)] if seed % DAMAGED_EVERY == 2 else ""


def write_traces(folder: Path) -> list[Path]:
    """Random traces, some with altered responses, and some that cannot be read or judged."""
    folder.mkdir()
    return [write_damaged(folder, seed, *altered_trace(seed)) for seed in range(TRACE_COUNT)]


def write_damaged(folder: Path, seed: int, header: Header, events: Sequence[Event]) -> Path:
    """Write one trace."""
    path, damage = folder / f"{seed:04}.jsonl", damage_of(seed)
    if damage == "malformed message":
        odd = [event for event in events if event.kind is Kind.REQUEST][-1]
        events = [replace(each, body={**each.body, "group_id": 5}) if each is odd else each for each in events]
    write_trace(path, header, events)
    text = path.read_bytes()
    if damage == "bad line":
        lines = text.splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:30], b"?\n", *lines[31:]]))
    elif damage == "byte order mark":
        path.write_bytes(b"\xef\xbb\xbf" + text)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.unlink()
        path = path.with_name(f"{path.name}.gz")
        path.write_bytes(gzip.compress(text)[:-40])
    return path


def run_command(*arguments: str | Path) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    command = [sys.executable, "-m", "fencepost", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=command_environment(), capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise MeasurementError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done.returncode, done.stdout


def summarize_report(path: Path, exit_code: int, *, names_places: bool = True) -> Mapping[str, Any]:
    """What a report says, without times and the events that show a failure; of what is left open only how many there
    are, unless it `names_places`."""
    report = json.loads(path.read_text())
    return {
        "exit code": exit_code,
        "verdicts, counts of checks and failures, causes": [
            [*(each[name] for name in COMPARED), len(each["failures"]) + each.get("more_failures", 0)]
            for each in report["requirements"]
        ],
        "root causes": [{key: value for key, value in each.items() if key != "trace"} for each in report["causes"]],
        "verdicts by number": report["outcome"]["verdicts"],
        "traces and events": [report["schedules"], report["events"]],
        "rules": report["rules"],
        "left open": report["undecided"] if names_places else len(report["undecided"]),
    }


def compare_reports(what: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Figure]:
    """Each part of two summaries."""
    for name, value in wanted.items():
        yield exactly(f"{what}: the same {name}", "yes" if value == found[name] else "no", "yes")


def expected_violations(paths: Sequence[Path]) -> tuple[Violations, int]:
    """What a watch is to find in these traces, by the name of the trace, and how many are not judged to their end."""
    found: Violations = Counter()
    unjudged = 0
    for path in paths:
        seed = int(path.name.partition(".")[0])
        unjudged += bool(damage_of(seed))
        if damage_of(seed) == "malformed message":
            continue
        events: list[Event] = []
        try:
            header, stream = open_trace(path)
            events += stream if not damage_of(seed) else iterate_readable(stream)
        except TraceError:
            continue
        judge = Judge(header)
        is_recommendation = judge.protocol.specification.is_recommendation
        violations = judge.judge_events(events).violations
        first = set(map(id, initial_violations(violations)))
        for each in violations:
            if not each.requirements or not all(map(is_recommendation, each.requirements)):
                found[f"{seed}", each.sequence, "violation" if id(each) in first else "following"] += 1
    return found, unjudged


def iterate_readable(events: Iterator[Event]) -> Iterator[Event]:
    """Yield the events up to the first line that is none."""
    try:
        yield from events
    except TraceError:
        return


def watched_violations(folder: Path, printed: str) -> tuple[Violations, int]:
    """The violations that a watch found and that stand, and how many traces it did not judge to their end; of empty
    ones it `printed` a line."""
    found: Violations = Counter()
    unjudged = {line for line in printed.splitlines() if "the file is empty" in line}
    for row in new_findings(findings_log(folder)):
        name = str(int(row["trace"].rpartition("/")[2].partition(".")[0]))
        if row["kind"] in ("quarantine", "unjudged"):
            unjudged.add(name)
        elif row["kind"] == "withdrawn":
            for kind in ("violation", "following"):
                found[name, row["sequence"], kind] -= found[name, row["sequence"], kind] > 0
        else:
            found[name, row["sequence"], row["kind"]] += 1
    return +found, len(unjudged)


def compare_watch(what: str, place: str | Path, paths: Sequence[Path], folder: Path) -> Iterator[Figure]:
    """What `watch` finds beside the judge."""
    exit_code, printed = run_command("pipeline", "watch", place, "--to", folder, "--once")
    (wanted, unjudged), (found, told) = expected_violations(paths), watched_violations(folder, printed)
    yield without_threshold(f"{what}: violations", found.total())
    yield exactly(f"{what}: violations that the judge does not find", (found - wanted).total(), 0)
    yield exactly(f"{what}: violations that only the judge finds", (wanted - found).total(), 0)
    yield exactly(f"{what}: traces told as not judged to their end", told, unjudged)
    yield exactly(f"{what}: exit code", exit_code, 1)


def check_verdicts(folder: Path) -> Iterator[Figure]:
    """Reports through files, and through a topic of Kafka."""
    traces = folder / "traces"
    paths = write_traces(traces)
    yield without_threshold("traces", len(paths))
    yield without_threshold("of them damaged", sum(bool(damage_of(seed)) for seed in range(TRACE_COUNT)))
    report = folder / "report.json"
    wanted = summarize_report(report, run_command("judge", traces, "--json", report)[0])
    yield without_threshold("requirements that fail", wanted["verdicts by number"]["fail"])
    corpus = folder / "corpus"
    code, _ = run_command("pipeline", "ingest", traces, "--to", corpus, "--buckets", "3")
    yield exactly("exit code of ingest, which names what it cannot read", code, 3)
    code, _ = run_command("pipeline", "judge", corpus, "--json", report)
    yield from compare_reports("files", wanted, summarize_report(report, code))


def check_watch_verdicts(folder: Path) -> Iterator[Figure]:
    """The violations that a watch of the same files finds."""
    paths = write_traces(folder / "traces")
    yield without_threshold("traces", len(paths))
    yield from compare_watch("watch", folder / "traces", paths, folder / "watched")


def check_topic_verdicts(folder: Path) -> Iterator[Figure]:
    """The same through a topic of Apache Kafka, in which no trace is as a file is damaged."""
    for path in write_traces(folder / "traces"):
        if damage_of(int(path.name.partition(".")[0])) in FILE_DAMAGE:
            path.unlink()
    paths = sorted((folder / "traces").iterdir())
    yield without_threshold("traces", len(paths))
    report = folder / "report.json"
    summarize = partial(summarize_report, report, names_places=False)
    with running_target("kafka4", folder) as target:
        address = target.removeprefix("kafka://")
        create_topic(address, "traces", 4)
        for path in paths:
            produce_records(address, "traces", records_of(path, path.name))
        place = f"{target}/traces"
        run_command("pipeline", "ingest", place, "--to", folder / "corpus", "--buckets", "3")
        code, _ = run_command("pipeline", "judge", folder / "corpus", "--json", report)
        found = summarize(code)
        ordered = link_in_order(Corpus.open(folder / "corpus"), folder / "traces", folder / "ordered")
        wanted = summarize(run_command("judge", ordered, "--json", report)[0])
        yield from compare_reports("topic", wanted, found)
        yield from compare_watch("watch of the topic", place, paths, folder / "watched")


def link_in_order(corpus: Corpus, traces: Path, folder: Path) -> Path:
    """A folder with the traces in the order of the corpus: of failures that are alike a report names the first."""
    for row in corpus.inputs():
        partition, offset, name = row.input.rsplit("/", 3)[1:]
        link = folder / partition / offset / name
        link.parent.mkdir(parents=True)
        link.symlink_to(traces / name)
    return folder
