"""`fencepost report`: saved reports and traces as text, pages, summaries and comparisons."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import run
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import from_html, report_schema, to_json
from fencepost.conformance.reports.report import render_report, to_html
from fencepost.conformance.results import RequirementResult, Verdict
from tests.support.sample_reports import KEPT, VIOLATED

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def violated(tmp_path: Path) -> Path:
    path = tmp_path / "violated.json"
    path.write_text(to_json(VIOLATED), encoding="utf-8")
    return path


def test_a_saved_report_is_shown_again(violated: Path, capsys: Capture) -> None:
    assert main(["report", str(violated)]) == VIOLATED.exit_code()
    assert capsys.readouterr().out == render_report(VIOLATED)


def test_a_page_is_a_report(violated: Path, tmp_path: Path, capsys: Capture) -> None:
    page, again = tmp_path / "r.html", tmp_path / "again.json"
    main(["report", str(violated), "--html", str(page)])
    assert page.read_text(encoding="utf-8") == to_html(VIOLATED)
    main(["report", str(page), "--json", str(again)])
    assert again.read_text(encoding="utf-8") == to_json(VIOLATED)


def test_traces_are_judged_and_shown(tmp_path: Path, capsys: Capture) -> None:
    run("bundled", only=["HB-05"], traces=tmp_path)
    assert main(["report", str(tmp_path), "--markdown", "-"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## ") and "\n\nNO VIOLATION" in text


def test_a_run_and_a_judgement_write_pages(tmp_path: Path) -> None:
    page, other = tmp_path / "a.html", tmp_path / "b.html"
    main(["test", "bundled", "--only", "HB-05", "--html", str(page), "--traces", str(tmp_path)])
    main(["judge", str(tmp_path), "--html", str(other)])
    assert from_html(page.read_text()).result("HB-05").verdict is Verdict.PASS
    assert from_html(other.read_text()).result("HB-05").verdict is Verdict.PASS


def test_several_reports_make_one_page(violated: Path, tmp_path: Path, capsys: Capture) -> None:
    kept, page = tmp_path / "kept.json", tmp_path / "r.html"
    kept.write_text(to_json(KEPT))
    assert main(["report", str(kept), str(violated), "--html", str(page)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert "2 reports of Fencepost" in page.read_text()


def test_a_comparison_tells_what_broke_and_what_is_no_longer_checked(
    violated: Path, tmp_path: Path, capsys: Capture
) -> None:
    results = [each for each in VIOLATED.results if each.id not in ("JOIN-29", "FIND-01")]
    old = replace(VIOLATED, results=(*results, RequirementResult("HB-05", Verdict.PASS)))
    before = tmp_path / "old.json"
    before.write_text(to_json(old))
    assert main(["report", str(violated), "--compare", str(before)]) == 1
    text = capsys.readouterr().out
    assert "newly broken  1: JOIN-29" in text
    assert "not checked   1: HB-05" in text
    assert "newly checked 2: FIND-01, JOIN-29" in text
    page, summary = tmp_path / "r.html", tmp_path / "r.md"
    words = ["report", str(violated), "--compare", str(before), "--html", str(page), "--markdown", str(summary)]
    assert main(words) == 1
    assert "<dt>newly broken</dt><dd>1: JOIN-29</dd>" in page.read_text()
    assert "2 reports of Fencepost" in page.read_text()
    assert "- newly broken: 1&#58; JOIN-29" in summary.read_text()
    assert main(["report", str(before), "--compare", str(before)]) == 0
    assert "Nothing is newly broken" in capsys.readouterr().out


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert main(["report", "--schema"]) == 0
    assert capsys.readouterr().out == report_schema()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name a report or traces"),
        (["none.json"], "none.json: No such file"),
        (["bad.json"], "bad.json: not JSON"),
        (["bad.html"], "bad.html: not a Fencepost report"),
        (["kept.json", "kept.json", "--junit", "j.xml"], "--junit takes one report; several make a page with --html"),
        (["kept.json", "kept.json", "--compare", "kept.json"], "--compare takes one report beside the older one"),
        (["kept.json", "--json", "r", "--html", "r"], "--json and --html both write to r"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("nonsense")
    Path("bad.html").write_text("nonsense")
    Path("kept.json").write_text(to_json(KEPT))
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error and len(error.splitlines()) == 1


def test_what_was_known_is_still_broken(violated: Path, tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(violated.read_text())
    assert document["outcome"]["verdicts"]["known"] == 1
    declared = [replace(each, verdict=Verdict.KNOWN) if each.id == "JOIN-29" else each for each in VIOLATED.results]
    before = tmp_path / "old.json"
    before.write_text(to_json(replace(VIOLATED, results=tuple(declared))))
    assert main(["report", str(violated), "--compare", str(before)]) == 0
