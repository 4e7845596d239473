"""The two logs of a corpus, and two processes that write to it: seconds a commit and a snapshot take, bytes of the log.

python -m tests.benchmarks.corpus_logs [COMMITS]
"""

import sys
import tempfile
import time
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.corpus_log import LOGS
from tests.support.corpus_tables import write_input

DEFAULT_COMMITS = 100


def commit_inputs(folder: str, name: str, commits: int) -> None:
    """Commit so many inputs, one at a time."""
    corpus = Corpus.open(Path(folder))
    with corpus.write() as writer:
        for number in range(commits):
            assert not writer.append([f"{name}{number}"], write_input(writer, f"{name}{number}"))


def measure_log(format: str, folder: Path, commits: int) -> Mapping[str, float]:
    """The figures of one log."""
    corpus = Corpus.create(folder, 4, format)
    begun = time.process_time()
    commit_inputs(str(folder), "alone", commits)
    alone = time.process_time() - begun
    with get_context("spawn").Pool(2) as pool:
        pool.starmap(commit_inputs, [(str(folder), name, commits // 2) for name in ("one", "other")])
    begun = time.process_time()
    files = len(corpus.snapshot().inputs())
    read = time.process_time() - begun
    assert files == commits + 2 * (commits // 2), "a commit was lost"
    log = (Path(corpus.data) / ("manifest" if format == "parquet" else "_delta_log")).glob("*")
    return {"commit": alone / commits, "snapshot": read, "log": sum(path.stat().st_size for path in log)}


def main(commits: int) -> None:
    """Print the figures of both."""
    with tempfile.TemporaryDirectory() as folder:
        found = {format: measure_log(format, Path(folder, format), commits) for format in LOGS}
    for what, base in found["parquet"].items():
        print(f"{what}: parquet {base:.4g}, delta {found['delta'][what]:.4g}, ratio {found['delta'][what] / base:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_COMMITS)
