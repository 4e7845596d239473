"""The table of what a cluster executes is the one that the measured rates give."""

from pathlib import Path

from tests.acceptance.cluster_table import (
    driver_rows,
    format_seconds,
    growth_rows,
    read_figures,
    table_rows,
)

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "clusters.md"


def test_the_page_has_the_rows_that_the_results_give() -> None:
    page = PAGE.read_text(encoding="utf-8")
    growth = growth_rows(read_figures("driver-growth"))
    for rows in (table_rows(read_figures("volume")), driver_rows(read_figures("driver")), growth):
        assert "\n".join(rows) in page, "see python -m tests.acceptance.cluster_table"


def test_a_rate_is_counted_for_every_core() -> None:
    rates = {
        "ingest: events a second": 20_000,
        "judge: events a second, in all": 2_000,
        "judge: events a second, one plain process": 1_000,
        "the three, the corpus read once: events a second": 1_500_000,
    }
    assert table_rows(rates)[2:] == [
        "| ingest | 10,000 | 62 s | 104 min |",
        "| judge | 1,000 | 10 min | 17.4 h |",
        "| queries of the three invariants | 750,000 | 0.8 s | 83 s |",
        "| one group of 10^8 events, on one core | 1,000 | 27.8 h | 27.8 h |",
    ]
    assert [format_seconds(each) for each in (1.25, 119, 121)] == ["1.2 s", "119 s", "2 min"]
