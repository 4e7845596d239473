"""Which tests are slow, by measurement: a file has each test function whose cases together take a second and more.

`python -m pytest --junitxml F`, then `python -m tests.support.slow_tests F` writes the file anew. Tests that are marked
`slow` by hand, or that need a real target, are not in it.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

FILE = Path(__file__).with_suffix(".txt")
MIN_SECONDS = 1.0
"""From so many seconds on a function is no part of the quick set."""
NIGHTLY_SECONDS = 4.0
"""From so many on it is left to `.ci/nightly`."""


def read_slow_tests(file: Path = FILE) -> Mapping[str, float]:
    """The seconds of each slow function, which is named as pytest does."""
    rows = (line.split() for line in file.read_text().splitlines())
    return {name: float(seconds) for seconds, name in rows}


def slow_tests_of(junit: str, known: Mapping[str, float]) -> dict[str, float]:
    """The seconds of the functions of a JUnit file that are slow; of those that it skips or lacks, the `known` ones."""
    took: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.fromstring(junit).iter("testcase"):
        name = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name'].partition('[')[0]}"
        if case.find("skipped") is None:
            took[name] += float(case.attrib["time"])
    return {name: seconds for name, seconds in {**known, **took}.items() if seconds >= MIN_SECONDS}


def is_there(test: str, root: Path) -> bool:
    """Whether a test function is still in its file."""
    file, _, function = test.partition("::")
    return (root / file).exists() and re.search(
        rf"^(async )?def {function}\(", (root / file).read_text(), re.M
    ) is not None


def main(junit: str) -> int:
    """Write the file anew from a JUnit file."""
    root = Path(__file__).parents[2]
    found = slow_tests_of(Path(junit).read_text(), read_slow_tests())
    rows = sorted((name, seconds) for name, seconds in found.items() if is_there(name, root))
    FILE.write_text("".join(f"{seconds:6.1f} {name}\n" for name, seconds in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
