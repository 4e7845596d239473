"""Thresholds of the verdict corpus: every trace is judged as the judge of the recorded commit judged it.

And those of calm groups: no trace is judged otherwise because steps are repeated.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tests.acceptance.framework import Check, Figure, at_least, exactly, without_threshold
from tests.acceptance.verdict_corpus.compare import RECORDINGS, compare, make, read
from tests.support.calm_traces import altered_calm_trace
from tests.support.repetition_comparison import RepetitionComparison, compare_repetitions
from tests.targets.process import cache_folder

JOBS = 2
"""How many processes judge."""
MIN_ALTERED_EVENTS = 1_000_000
SEEDS_AT_ONCE = 50


def compare_verdicts(traces: Path, least: int) -> Iterator[Figure]:
    """Judge the traces of a folder of the corpus, at least `least` of them."""
    compared = compare(traces, JOBS, lambda name, way: True)
    yield at_least("traces", compared.traces, least)
    yield without_threshold("verdicts", compared.verdicts)
    yield exactly("verdicts that differ", len(compared.differences), 0)
    parts = Counter(part for difference in compared.differences for part in difference.parts)
    for part, count_of_part in sorted(parts.items()):
        yield without_threshold(f"verdicts whose {part} differ", count_of_part)
    for difference in compared.differences:
        if "violations" in difference.parts:
            yield Figure(f"{difference.trace}, {difference.way}", ", ".join(difference.parts), "", False)


def corpus_folder() -> Path:
    """The traces that the recorded commit makes, made once and kept in the cache."""
    corpus = cache_folder() / "verdict-corpus"
    if not (corpus / "manifest.json").exists():
        make(corpus, None, JOBS)
    return corpus


def check_corpus(folder: Path) -> Iterator[Figure]:
    """The traces of the corpus get the verdicts of the recorded commit."""
    yield from compare_verdicts(corpus_folder(), 3_000)


def compare_altered(seeds: Sequence[int]) -> RepetitionComparison:
    """`compare_repetitions` for a pool."""
    return compare_repetitions(map(altered_calm_trace, seeds))


def compare_stored(paths: Sequence[Path]) -> RepetitionComparison:
    """`compare_repetitions` for a pool."""
    return compare_repetitions(map(read, paths))


def check_repetitions(folder: Path) -> Iterator[Figure]:
    """Altered traces of calm groups, and all traces of the corpus: scenarios, schedules, tours, those of every bug."""
    with get_context("spawn").Pool(JOBS) as pool:
        altered = RepetitionComparison()
        for first in count(step=SEEDS_AT_ONCE * JOBS):
            chunks = [range(first + job, first + SEEDS_AT_ONCE * JOBS, JOBS) for job in range(JOBS)]
            for each in pool.imap(compare_altered, chunks):
                altered.include(each)
            if altered.events >= MIN_ALTERED_EVENTS:
                break
        paths = sorted((corpus_folder() / "traces").glob("*.jsonl.gz"))
        stored = RepetitionComparison()
        for each in pool.imap(compare_stored, [paths[first : first + 20] for first in range(0, len(paths), 20)]):
            stored.include(each)
    yield at_least("altered events", altered.events, MIN_ALTERED_EVENTS)
    yield at_least("requests among them that repeat a step", altered.repeated, 10_000)
    yield at_least("altered traces with a violation", altered.with_violations, 100)
    yield exactly("altered traces that are judged differently", altered.different, 0)
    yield at_least("other traces", stored.traces, 3_000)
    yield without_threshold("requests in them that repeat a step", stored.repeated)
    yield exactly("other traces that are judged differently", stored.different, 0)


CHECKS = (
    Check("corpus", "traces of the bundled coordinator and of every bug are judged as ever", check_corpus),
    Check("repetitions", "what calm groups repeat is what is found when it is handled anew", check_repetitions),
    Check(
        "recordings",
        "so are recordings and captures of real brokers",
        lambda folder: compare_verdicts(RECORDINGS, 1),
    ),
)
