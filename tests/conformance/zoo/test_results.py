"""Results of hunts in a row and in a table, compared with recorded ones."""

from dataclasses import replace

from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.registry import fault_named
from fencepost.conformance.zoo.results import (
    BUG_RESULTS,
    HuntSummary,
    ResultTable,
    from_json,
    load_results,
    merge_tables,
    no_longer_found,
    render_markdown,
    result_row,
    supplement_table,
    table_lines,
    to_json,
)
from fencepost.conformance.zoo.strategies import HYPOTHESIS, REMARKS, SCENARIOS, SCHEDULES

SPECIMEN = fault_named("BUG-35")


def hunt_result(
    method: str, seed: int, requirement: str, schedules: int = 1, seconds: float = 1.0, requests: int = 5
) -> HuntResult:
    return HuntResult(
        HuntTask("BUG-35", method, seed), requirement, schedules, seconds, requests, (f"seed {seed}",), seed + 5
    )


FINDS = (
    hunt_result(SCHEDULES, 1, "GEN-05", 9, 2.0, 7),
    hunt_result(SCHEDULES, 2, "JOIN-37", 3, 1.0, 8),
    hunt_result(SCHEDULES, 3, "GEN-05", 5, 6.0, 6),
    hunt_result(SCHEDULES, 4, "", 99),
    hunt_result(HYPOTHESIS, 1, "", 99),
)
TABLE = ResultTable(4, 1, 60.0, (result_row(SPECIMEN, FINDS), result_row(fault_named("BUG-36"), (), "because")))


def test_a_row_sums_up_what_was_found() -> None:
    found = TABLE.rows[0]
    assert (found.found_by, found.requirement, found.shortest) == (SCHEDULES, "GEN-05", ("seed 3",))
    assert (found.seed, found.chunk) == (2, 7)
    assert found.hunts[SCHEDULES] == HuntSummary(3, 4, 2.0, 5, 7)
    assert found.hunts[HYPOTHESIS] == HuntSummary(0, 1)


def test_a_scenario_counts_where_no_schedule_found_anything() -> None:
    found = result_row(SPECIMEN, [hunt_result(SCHEDULES, 1, ""), hunt_result(SCENARIOS, 0, "GEN-05")], "never told")
    assert (found.found_by, found.reason) == (SCENARIOS, "")


def test_a_baseline_is_no_find_of_the_kit() -> None:
    found = result_row(SPECIMEN, [hunt_result(SCHEDULES, 1, ""), hunt_result(HYPOTHESIS, 1, "GEN-05")], "too hard")
    assert (found.found_by, found.reason) == ("", "too hard")


def test_a_table_is_read_back_as_it_was_written() -> None:
    assert from_json(to_json(TABLE)) == TABLE


def test_what_is_not_found_any_more_is_lost() -> None:
    blank = replace(TABLE.rows[0], found_by="")
    assert no_longer_found(TABLE, replace(TABLE, rows=(blank, TABLE.rows[1]))) == ["BUG-35"]
    assert no_longer_found(TABLE, TABLE) == []
    assert no_longer_found(replace(TABLE, rows=(blank,)), TABLE) == []


def test_new_rows_take_the_place_of_old_ones_in_the_order_of_what_there_is() -> None:
    fresh = result_row(SPECIMEN, FINDS[:1])
    other = result_row(fault_named("BUG-01"), ())
    new = replace(TABLE, rows=(other, fresh))
    assert merge_tables(TABLE, new, ["BUG-01", "BUG-02", "BUG-35", "BUG-36"]).rows == (other, fresh, TABLE.rows[1])
    assert merge_tables(TABLE, new, ["BUG-35"]).rows == (fresh,)


def test_a_hunt_by_some_means_leaves_what_others_found() -> None:
    none = {SCHEDULES: HuntSummary(0, 3)}
    missed = replace(TABLE.rows[1], hunts=none)
    seen = replace(missed, found_by=REMARKS, requirement="COMMIT-26", hunts={REMARKS: HuntSummary(1, 1)}, reason="")
    old, new = replace(TABLE, rows=(TABLE.rows[0], missed)), replace(TABLE, rows=(replace(seen, name="BUG-35"), seen))
    first, second = supplement_table(old, new).rows
    assert (first.found_by, set(first.hunts)) == (SCHEDULES, {*TABLE.rows[0].hunts, REMARKS})
    assert (second.found_by, second.hunts) == (REMARKS, {**none, REMARKS: HuntSummary(1, 1)})
    plainer = replace(seen, found_by=SCENARIOS, hunts={SCENARIOS: HuntSummary(1, 1)})
    (after,) = supplement_table(replace(TABLE, rows=(second,)), replace(TABLE, rows=(plainer,))).rows
    assert after.found_by == SCENARIOS
    blank = replace(missed, hunts={REMARKS: HuntSummary(0, 1)})
    (gone,) = supplement_table(replace(TABLE, rows=(second,)), replace(TABLE, rows=(blank,))).rows
    assert gone.found_by == "", "what is looked for again and not found is lost"
    assert supplement_table(replace(TABLE, rows=()), new) == new


def test_people_see_what_was_found_and_why_something_was_not() -> None:
    text = "\n".join(table_lines(TABLE))
    assert "BUG-35   schedules     3/4     2.00          5         7  GEN-05" in text
    assert "BUG-36   not found  because" in text
    assert "1 of 2 found, 1 of them by random schedules; median 2.0 s and 7 requests" in text
    assert "plain Hypothesis found 0 of 1" in text
    page = render_markdown(TABLE)
    assert "| BUG-36 |" in page and "not found: because" in page


def test_the_page_beside_the_record_says_what_the_record_says() -> None:
    assert BUG_RESULTS.with_suffix(".md").read_text(encoding="utf-8") == render_markdown(load_results())
