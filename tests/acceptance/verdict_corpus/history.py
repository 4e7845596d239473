"""Which commits since 79b4ef4 changed verdicts of the corpus: `python -m tests.acceptance.verdict_corpus.history`.

In a worktree, commits on the first-parent line that touched the model or the traces judge those traces whose verdict is
another one now: the ends of a stretch, and what lies between them if something differs. Violations, checks, decided
differences and the number of reasons of doubt are compared; counts of rules and transitions are left out. What is taken
back in the same stretch is not seen.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fencepost.traces.files.trace_files import write_trace
from tests.acceptance.verdict_corpus.compare import COMMIT, Difference, compare, git, read
from tests.benchmarks.trees import run_script
from tests.targets.process import cache_folder

OUTLINE = Path(__file__).with_name("outline.py")
FIRST = "d2249c5f"
"""The first commit whose classes have the names that `outline.py` asks for; those before it only give new names."""
COUNTED = {"rules", "transitions"}
"""The parts of a verdict that are left out."""
JOBS = 2

Outlines = Mapping[str, Any]
"""The outline of the verdict on each trace."""


def find_changes(length: int, outlines_of: Callable[[int], Outlines]) -> Iterator[tuple[int, list[str]]]:
    """The places of those of `length` commits whose outlines differ from those of the commit before, each with the
    traces."""

    def search(low: int, high: int) -> Iterator[tuple[int, list[str]]]:
        before, after = outlines_of(low), outlines_of(high)
        if before == after:
            return
        if high - low == 1:
            yield high, sorted(name for name in after if before.get(name) != after[name])
            return
        middle = (low + high) // 2
        yield from search(low, middle)
        yield from search(middle, high)

    return search(0, length - 1)


def list_commits() -> list[str]:
    """The commits from `FIRST` to the newest that may change verdicts, the oldest first."""
    line = output_of("rev-list", "--first-parent", "--reverse", f"{FIRST}..HEAD").split()
    touching = set(output_of("rev-list", f"{FIRST}..HEAD", "--", "traces", "model").split())
    return [output_of("rev-parse", FIRST).strip(), *(each for each in line if each in touching or each == line[-1])]


def output_of(*words: str) -> str:
    """What git prints in this repository."""
    return subprocess.run(["git", *words], cwd=OUTLINE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout


def differing_traces(corpus: Path) -> list[str]:
    """The traces of the corpus whose verdict differs in more than counts."""

    def is_one(difference: Difference) -> bool:
        return bool(set(difference.parts) - COUNTED)

    return sorted({each.trace for each in filter(is_one, compare(corpus, JOBS).differences)})


def main() -> int:
    """Print the commits and how many traces each changed the verdicts of."""
    corpus = cache_folder() / "verdict-corpus"
    if not corpus.exists():
        print(f"no corpus of {COMMIT}: run python -m tests.acceptance verdicts corpus first", file=sys.stderr)
        return 2
    names, commits = differing_traces(corpus), list_commits()
    print(f"{len(names)} traces whose verdict differs, {len(commits)} commits")
    with tempfile.TemporaryDirectory() as folder:
        tree, traces = Path(folder) / "tree", Path(folder) / "traces"
        traces.mkdir()
        for name in names:
            write_trace(traces / f"{name}.jsonl", *read(corpus / "traces" / f"{name}.jsonl.gz"))
        git("worktree", "add", "--quiet", "--detach", str(tree), FIRST)

        @cache
        def outlines_of(place: int) -> Outlines:
            subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", commits[place]], check=True)
            return run_script(tree, OUTLINE, traces)

        try:
            for place, changed in find_changes(len(commits), outlines_of):
                print(describe_change(commits[place], changed), flush=True)
        finally:
            git("worktree", "remove", "--force", str(tree))
    return 0


def describe_change(commit: str, changed: Sequence[str]) -> str:
    """A line about a commit and the traces that it changed the verdicts of."""
    return f"{output_of('log', '-1', '--format=%h %s', commit).strip()}: {len(changed)}, such as {changed[0]}"


if __name__ == "__main__":
    sys.exit(main())
