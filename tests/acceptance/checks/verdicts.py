"""Thresholds of the verdict corpus: every trace is judged as the judge of the recorded commit judged it."""

from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.framework import Check, Figure, at_least, exactly, without_threshold
from tests.acceptance.verdict_corpus.compare import RECORDINGS, compare, make
from tests.targets.process import cache_folder

JOBS = 2
"""How many processes judge."""


def compare_verdicts(traces: Path, least: int) -> Iterator[Figure]:
    """Judge the traces of a folder of the corpus, at least `least` of them."""
    compared = compare(traces, JOBS, lambda name, way: True)
    yield at_least("traces", compared.traces, least)
    yield without_threshold("verdicts", compared.verdicts)
    yield exactly("verdicts that differ", len(compared.differences), 0)
    for difference in compared.differences[:5]:
        yield Figure(f"{difference.trace}, {difference.way}", "differs", "", False)


def check_corpus(folder: Path) -> Iterator[Figure]:
    """The traces that the recorded commit makes, made once and kept in the cache."""
    corpus = cache_folder() / "verdict-corpus"
    if not (corpus / "manifest.json").exists():
        make(corpus, None, JOBS)
    yield from compare_verdicts(corpus, 3_000)


CHECKS = (
    Check("corpus", "traces of the bundled coordinator and of every bug are judged as ever", check_corpus),
    Check(
        "recordings",
        "so are recordings and captures of real brokers",
        lambda folder: compare_verdicts(RECORDINGS, 1),
    ),
)
