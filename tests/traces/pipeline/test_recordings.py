"""Files of a corpus are joined into traces."""

from dataclasses import replace

from fencepost.traces.pipeline.trace_rows import TraceFile, group_recordings, line_offsets

ALONE = TraceFile("a", 10, 11, None, False, {0: 10})
FIRST, SECOND, THIRD = (
    replace(ALONE, trace=f"/r/{part}", recording="r", part=part, continued=3 if part > 1 else None)
    for part in (1, 2, 3)
)


def names(*files: TraceFile) -> list[list[str]]:
    return [[file.trace for file in whole] for whole in group_recordings(files)]


def test_parts_that_follow_each_other_are_one_trace() -> None:
    assert names(THIRD, ALONE, FIRST, SECOND) == [["a"], ["/r/1", "/r/2", "/r/3"]]


def test_a_part_without_the_one_before_begins_a_trace() -> None:
    assert names(FIRST, THIRD) == [["/r/1"], ["/r/3"]]
    assert names(FIRST, replace(SECOND, continued=None)) == [["/r/1"], ["/r/2"]]


def test_the_same_part_twice_is_no_next_part() -> None:
    assert names(FIRST, replace(FIRST, trace="/copy/1")) == [["/copy/1"], ["/r/1"]]


def test_after_a_flaw_another_trace_begins() -> None:
    flawed = replace(SECOND, flawed=7)
    assert names(FIRST, flawed, THIRD) == [["/r/1", "/r/2"], ["/r/3"]]


def test_the_lines_of_a_trace_are_counted_on() -> None:
    ((*found,),) = [line_offsets(whole) for whole in group_recordings([FIRST, SECOND, THIRD])]
    assert [(file.part, begins, before) for file, begins, before in found] == [(1, 0, 0), (2, 3, 11), (3, 3, 19)]
