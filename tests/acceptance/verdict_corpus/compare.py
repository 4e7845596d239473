"""Compare: the tree at hand judges every trace of a folder, and has to come to the verdicts that are there.

A folder has `recordings/NAME.jsonl.gz` and `verdicts.jsonl.gz`. A verdict that is to be another one is renewed, and its
line says why.
"""

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import Judge, judge
from tests.acceptance.verdict_corpus.canonical import Plain, canonical

RECORDINGS = Path(__file__).parents[2] / "identity"
DIFF_LINES = 60
"""How much of a difference is shown."""

Verdicts = Mapping[str, Plain]
"""The verdicts on one trace by the way it was judged."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A verdict that is another one now: the `parts` of it that differ; `diff` shows how, for people."""

    trace: str
    way: str
    parts: tuple[str, ...]
    diff: tuple[str, ...]

    def __str__(self) -> str:
        more = [f"... {len(self.diff) - DIFF_LINES} lines more"] if len(self.diff) > DIFF_LINES else []
        return "\n".join([f"{self.trace}, {self.way}:", *self.diff[:DIFF_LINES], *more])


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many traces were judged, how many verdicts that gave, and which of them differ."""

    traces: int
    verdicts: int
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        equal = self.verdicts - len(self.differences)
        return f"{self.traces} traces, {self.verdicts} verdicts: {equal} equal, {len(self.differences)} different"


# --- one trace


def read(path: Path) -> tuple[Header, tuple[Event, ...]]:
    """The header and the events of a trace."""
    header, events = open_trace(path)
    return header, tuple(events)


def judge_by(way: str, header: Header, events: Sequence[Event]) -> Plain:
    """The verdict in its canonical form: by passes, as runs on a target judge, or in one, as files are judged."""
    match way:
        case "judge":
            return canonical(judge(header, events))
        case "likely":
            return canonical(judge(header, events, eager=True))
        case "stream":
            return canonical(Judge(header).judge_events(iter(events)))
        case _:
            raise ValueError(f"no way of judging: {way}")


def compare_trace(path: Path, verdicts: Verdicts) -> list[Difference]:
    """Where the tree at hand comes to another verdict on this trace."""
    header, events = read(path)
    found = []
    for way, verdict in verdicts.items():
        before, now = verdict, json.loads(json.dumps(judge_by(way, header, events)))
        if now != before:
            name = path.name.removesuffix(".jsonl.gz")
            parts = tuple(sorted(part for part in before.keys() | now.keys() if before.get(part) != now.get(part)))
            diff = tuple(unified_diff(text(before), text(now), "then", "now", lineterm=""))
            found.append(Difference(name, way, parts, diff))
    return found


def text(verdict: Plain) -> list[str]:
    """A verdict in lines."""
    return json.dumps(verdict, sort_keys=True, indent=1).splitlines()


# --- a folder


def verdicts_in(folder: Path) -> dict[str, dict[str, Plain]]:
    """The verdicts of a folder by trace."""
    found: dict[str, dict[str, Plain]] = defaultdict(dict)
    with gzip.open(folder / "verdicts.jsonl.gz") as lines:
        for line in map(json.loads, lines):
            found[line["trace"]][line["way"]] = line["verdict"]
    return dict(found)


def renew(folder: Path, differences: Iterable[Difference], why: str) -> None:
    """Put the verdicts of the tree at hand in the place of those that differ."""
    differing = {(each.trace, each.way) for each in differences}
    with gzip.open(folder / "verdicts.jsonl.gz", "rt") as lines:
        entries = list(map(json.loads, lines))
    with gzip.open(folder / "verdicts.jsonl.gz", "wt", encoding="ascii") as out:
        for entry in entries:
            if (entry["trace"], entry["way"]) in differing:
                header, events = read(folder / "recordings" / f"{entry['trace']}.jsonl.gz")
                entry |= {"verdict": judge_by(entry["way"], header, events), "why": why}
            out.write(json.dumps(entry, sort_keys=True) + "\n")


def everything(name: str, way: str) -> bool:
    """Every trace, judged in every way."""
    return True


def compare(folder: Path, jobs: int = 1, wanted: Callable[[str, str], bool] = everything) -> Comparison:
    """Judge the traces of a folder in so many processes, as far as they are `wanted` by name and way of judging."""
    verdicts: dict[str, Verdicts] = {}
    for name, each in verdicts_in(folder).items():
        if chosen := {way: verdict for way, verdict in each.items() if wanted(name, way)}:
            verdicts[name] = chosen
    tasks = [(folder / "recordings" / f"{name}.jsonl.gz", each) for name, each in sorted(verdicts.items())]
    differences: list[Difference] = []
    with get_context("spawn").Pool(jobs) if jobs > 1 else nullcontext() as pool:
        done: Iterable[list[Difference]]
        done = map(compare_task, tasks) if pool is None else pool.imap(compare_task, tasks, chunksize=4)
        for found in done:
            differences += found
    return Comparison(len(tasks), sum(map(len, verdicts.values())), tuple(differences))


def compare_task(task: tuple[Path, Verdicts]) -> list[Difference]:
    """`compare_trace` for a pool."""
    return compare_trace(*task)


# --- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the recordings and say what differs; 1 if anything does, or nothing was judged."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.verdict_corpus", description=__doc__)
    parser.add_argument("--folder", type=Path, default=RECORDINGS, help="another folder than that of the recordings")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes (default: 2)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="traces to judge, such as 'kafka4.*'")
    parser.add_argument("--shown", type=int, default=5, metavar="N", help="differences to show (default: 5)")
    parser.add_argument("--renew", metavar="WHY", help="keep the new verdicts, for this reason")
    given = parser.parse_args(arguments)
    compared = compare(given.folder, given.jobs, lambda name, _: fnmatchcase(name, given.only))
    if given.renew:
        renew(given.folder, compared.differences, given.renew)
        print(f"{given.folder.name}: {len(compared.differences)} verdicts renewed")
        return 0
    print(f"{given.folder.name}: {compared}", flush=True)
    for difference in compared.differences[: given.shown]:
        print(f"\n{difference}")
    return 1 if compared.differences or not compared.traces else 0
