"""Compare: the tree at hand judges every trace of a folder, and has to come to the verdicts that are there.

A folder has `traces/NAME.jsonl.gz` and `verdicts.jsonl.gz`; `make` writes it. A verdict of a recording that is meant to
be another one than at commit 79b4ef4 is renewed, and its line says why.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import Judge, judge
from tests.acceptance.verdict_corpus.canonical import Plain, canonical
from tests.acceptance.verdict_corpus.conversion import RENAMED, Renamed, convert_trace, convert_verdict
from tests.targets.process import cache_folder

COMMIT = "79b4ef4"
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RECORDINGS = HERE / "recordings"
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


def read(path: Path, renamed: Renamed = RENAMED) -> tuple[Header, tuple[Event, ...]]:
    """An old trace, as the tree at hand reads it."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        with gzip.open(path) as lines:
            file.writelines(convert_trace(lines, renamed))
        file.flush()
        header, events = open_trace(file.name)
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


def compare_trace(path: Path, verdicts: Verdicts, renamed: Renamed = RENAMED) -> list[Difference]:
    """Where the tree at hand comes to another verdict on this trace."""
    header, events = read(path, renamed)
    found = []
    for way, verdict in verdicts.items():
        before, now = convert_verdict(verdict, renamed), json.loads(json.dumps(judge_by(way, header, events)))
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
                header, events = read(folder / "traces" / f"{entry['trace']}.jsonl.gz")
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
    tasks = [(folder / "traces" / f"{name}.jsonl.gz", each) for name, each in sorted(verdicts.items())]
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


# --- the old tree


def make(folder: Path, old: Path | None, jobs: int) -> None:
    """Have the old tree make the corpus. Raises `CalledProcessError`."""
    with worktree() if old is None else nullcontext(old) as tree:
        paths = os.pathsep.join([str(tree / ".src"), str(tree)])
        command = [sys.executable, "-P", str(HERE / "make.py"), str(folder), "--jobs", str(jobs)]
        subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"}, check=True)


@contextmanager
def worktree() -> Iterator[Path]:
    """A worktree of the old commit, for as long as this lasts. Raises `CalledProcessError`."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / COMMIT
        git("worktree", "add", "--quiet", "--detach", str(tree), COMMIT)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*words: str) -> None:
    """Run git in this repository. Raises `CalledProcessError`."""
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


# --- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the corpus unless it is there, judge it and the recordings, and say what differs.

    Returns 1 if anything differs, or nothing was judged.
    """
    parser = argparse.ArgumentParser(prog="verdict_corpus", description=__doc__)
    parser.add_argument("--old", type=Path, help=f"a worktree of {COMMIT} (default: one made for the purpose)")
    parser.add_argument("--folder", type=Path, help="where the corpus is kept (default: verdict-corpus in the cache)")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes (default: 2)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="traces to judge, such as 'BUG-35.*'")
    parser.add_argument("--shown", type=int, default=5, metavar="N", help="differences to show (default: 5)")
    parser.add_argument("--renew", metavar="WHY", help="keep the new verdicts on the recordings, for this reason")
    given = parser.parse_args(arguments)
    if given.renew:
        compared = compare(RECORDINGS, given.jobs, lambda name, _: fnmatchcase(name, given.only))
        renew(RECORDINGS, compared.differences, given.renew)
        print(f"{RECORDINGS.name}: {len(compared.differences)} verdicts renewed")
        return 0
    folder = (given.folder or cache_folder() / "verdict-corpus").absolute()
    if not (folder / "manifest.json").exists():
        if (folder / "traces").exists():
            parser.error(f"{folder} has traces, but no manifest.json: an interrupted corpus is removed by hand")
        make(folder, given.old and given.old.absolute(), given.jobs)
    differences: list[Difference] = []
    traces = 0
    for each in (folder, RECORDINGS):
        compared = compare(each, given.jobs, lambda name, _: fnmatchcase(name, given.only))
        print(f"{each.name}: {compared}", flush=True)
        differences += compared.differences
        traces += compared.traces
    for difference in differences[: given.shown]:
        print(f"\n{difference}")
    return 1 if differences or not traces else 0
