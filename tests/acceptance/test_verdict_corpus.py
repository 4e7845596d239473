"""The verdict corpus: recordings of real brokers are judged as ever, and a verdict that is another one is seen."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import TraceError
from tests.acceptance.verdict_corpus.canonical import Plain
from tests.acceptance.verdict_corpus.compare import RECORDINGS, compare, compare_trace, main, renew, verdicts_in

KEPT = "kafka4.absent-member-is-waited-for"
"""A recording in which nothing is wrong."""


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Plain]]:
    return verdicts_in(RECORDINGS)


@pytest.fixture
def folder(recorded: dict[str, dict[str, Plain]], tmp_path: Path) -> Path:
    """A complete corpus of one trace."""
    (tmp_path / "recordings").mkdir()
    shutil.copy(trace(KEPT), tmp_path / "recordings")
    write(tmp_path, recorded[KEPT])
    return tmp_path


def trace(name: str) -> Path:
    return RECORDINGS / "recordings" / f"{name}.jsonl.gz"


def write(folder: Path, verdicts: dict[str, Plain]) -> None:
    """The verdicts on the one trace of a corpus."""
    with gzip.open(folder / "verdicts.jsonl.gz", "wt") as lines:
        for way, verdict in verdicts.items():
            lines.write(json.dumps({"trace": KEPT, "way": way, "verdict": verdict}) + "\n")


def altered(verdict: Plain) -> Iterator[tuple[str, Plain]]:
    """The verdict with one thing changed."""
    yield "an event more", verdict | {"events": verdict["events"] + 1}
    yield "a check less", verdict | {"checks": verdict["checks"][1:]}
    first, *others = verdict["checks"]
    yield "another outcome", verdict | {"checks": [first | {"outcome": "fail"}, *others]}
    yield "another rule", verdict | {"rules": verdict["rules"] | {"join.made-up": 1}}
    yield "a transition less", verdict | {"transitions": verdict["transitions"][1:]}
    yield "something left open", verdict | {"inconclusive": ["group 'g', request 1: who knows"]}


def is_quick(name: str, way: str) -> bool:
    """Judging this recording in this way takes no seconds."""
    return way == "likely" or ".clients." in name or (way == "judge" and ".schedule-" not in name)


@pytest.mark.slow
@pytest.mark.parametrize("kafka", ["kafka4", pytest.param("kafka3", marks=pytest.mark.acceptance)])
def test_recordings_are_judged_as_ever(kafka: str) -> None:
    """In the quicker ways only; `python -m tests.acceptance.verdict_corpus` goes all ways."""
    compared = compare(RECORDINGS, wanted=lambda name, way: name.startswith(kafka) and is_quick(name, way))
    assert compared.traces > 300
    assert [str(each) for each in compared.differences] == []


def test_recordings_show_what_there_is_to_see(recorded: dict[str, dict[str, Plain]]) -> None:
    verdicts = [verdict for ways in recorded.values() for verdict in ways.values()]
    assert {path.name for path in (RECORDINGS / "recordings").iterdir()} == {f"{name}.jsonl.gz" for name in recorded}
    for part in ("violations", "checks", "rules", "transitions", "differences", "inconclusive"):
        assert any(verdict[part] for verdict in verdicts), part


def test_a_verdict_that_is_another_one_is_seen(recorded: dict[str, dict[str, Plain]]) -> None:
    assert compare_trace(trace(KEPT), recorded[KEPT]) == []
    for what, verdict in altered(recorded[KEPT]["judge"]):
        (difference,) = compare_trace(trace(KEPT), {"judge": verdict})
        assert difference.trace == KEPT and difference.way == "judge", what
        assert any(line[:1] in "+-" for line in difference.diff), what


def test_the_exit_code_says_whether_all_are_equal(
    folder: Path, recorded: dict[str, dict[str, Plain]], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--folder", str(folder), "--jobs", "1", "--only", KEPT]
    assert main(command) == 0
    ways = recorded[KEPT]
    write(folder, ways | {"judge": ways["judge"] | {"events": 1}})
    assert main(command) == 1
    shown = capsys.readouterr().out
    assert f"{folder.name}: 1 traces, {len(ways)} verdicts: {len(ways) - 1} equal, 1 different" in shown
    assert '- "events": 1,' in shown
    assert main([*command[:-1], "no such trace"]) == 1


def test_only_verdicts_that_differ_are_renewed_and_say_why(folder: Path, recorded: dict[str, dict[str, Plain]]) -> None:
    ways = recorded[KEPT]
    write(folder, ways | {"judge": ways["judge"] | {"events": 1}})
    renew(folder, compare(folder).differences, "the judge counts all events")
    assert compare(folder).differences == ()
    with gzip.open(folder / "verdicts.jsonl.gz") as lines:
        reasons = {entry["way"]: entry.get("why") for entry in map(json.loads, lines)}
    assert reasons == dict.fromkeys(ways) | {"judge": "the judge counts all events"}


def test_a_trace_that_is_missing_is_an_error(folder: Path) -> None:
    (folder / "recordings" / f"{KEPT}.jsonl.gz").unlink()
    with pytest.raises(TraceError):
        compare(folder)


def test_another_way_of_judging_is_an_error(recorded: dict[str, dict[str, Plain]]) -> None:
    with pytest.raises(ValueError, match="no way of judging: guess"):
        compare_trace(trace(KEPT), {"guess": recorded[KEPT]["judge"]})
