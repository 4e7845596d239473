"""Badges: the nine rules that keep a badge from promising more than its report."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.badge import (
    HEX,
    BadgeColour,
    badge_files,
    judge_report,
    make_badge,
    to_badge_json,
    to_badge_svg,
)
from fencepost.conformance.reports.json_report import ReportError, from_json, to_json
from fencepost.conformance.results import (
    Ending,
    EndKind,
    Kit,
    NamedBy,
    Report,
    RequirementResult,
    Scope,
    Verdict,
    describe_kit,
)
from fencepost.conformance.run.provenance import record_plan
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.requirement import Tier
from tests.support.sample_reports import JOIN_29
from tests.support.whole_reports import ALL_KEPT, PROVENANCE, REQUIREMENTS, full_report

CORE = [id for id, each in REQUIREMENTS.items() if each.tier is Tier.CORE]
DIGEST = describe_kit(DEFAULT_SPECIFICATION).catalogue[:7]
LABEL = "kafka group protocol"
STARTED = datetime(2026, 11, 22, 12, tzinfo=UTC)
verdicts = st.dictionaries(st.sampled_from(sorted(REQUIREMENTS)), st.sampled_from(Verdict), max_size=6)
endings = st.one_of(st.none(), st.builds(Ending, st.sampled_from(EndKind), st.just("why")))
plans = st.builds(
    Plan, st.just("bundled"), st.sampled_from([(), ("JOIN-*",)]), st.booleans(), excluded=st.sampled_from([(), ("X",)])
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Reports of all kinds, whole ones often."""
    changed = draw(verdicts)
    results = tuple(RequirementResult(id, changed.get(id, Verdict.PASS), checks=1) for id in REQUIREMENTS)
    report = replace(ALL_KEPT, results=results)
    if draw(st.booleans()):
        return report
    plan = draw(st.one_of(st.none(), st.builds(record_plan, plans)))
    return replace(
        report,
        results=results[: draw(st.sampled_from([1, 200, len(results)]))],
        ended=draw(endings),
        cut_short=draw(st.booleans()),
        scope=draw(st.sampled_from(Scope)),
        unclassified=draw(st.sampled_from([(), (JOIN_29,)])),
        idle_findings=draw(st.sampled_from([(), ("spins",)])),
        undecided=draw(st.sampled_from([(), ("who knows",)])),
        kit=draw(st.sampled_from([None, Kit("0.0.9", 290, "f" * 64)])),
        provenance=draw(st.sampled_from([None, replace(PROVENANCE, plan=plan), replace(PROVENANCE, started="soon")])),
    )


def look_of(report: Report, tier: Tier = Tier.CORE) -> tuple[str, BadgeColour]:
    """Message and colour: quicker than a badge, whose title has the digest of the report."""
    return judge_report(report, tier, None, None)


# --- rule 1: what is counted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [each for each in Verdict if each not in (Verdict.PASS, Verdict.FAIL)])
def test_only_passes_count_and_the_tier_of_the_catalogue_is_always_shown(verdict: Verdict) -> None:
    badge = make_badge(full_report(**{CORE[0].replace("-", "_"): verdict}))
    assert badge.message.startswith(f"core {len(CORE) - 1}/{len(CORE)}")


@given(reports(), st.sampled_from(Tier))
def test_no_percentage_and_no_word_that_promises(report: Report, tier: Tier) -> None:
    message, _ = look_of(report, tier)
    assert re.search(r"%|certified|conformant|compliant", message + LABEL, re.IGNORECASE) is None


# --- rule 2: a pure function ------------------------------------------------------------------------------------


@given(reports(), st.sampled_from(Tier))
@settings(max_examples=10)
def test_equal_reports_make_equal_badges(report: Report, tier: Tier) -> None:
    assert badge_files(make_badge(report, tier), "r.json") == badge_files(make_badge(report, tier), "r.json")


def test_the_tier_is_in_the_message_of_its_own_badge() -> None:
    for tier in Tier:
        assert make_badge(ALL_KEPT, tier).message.startswith(f"{tier} ")


# --- rule 3: only whole, finished runs with a plan count -----------------------------------------------------------


@given(reports(), st.sampled_from(Tier))
def test_green_means_a_whole_finished_run_without_violations_open_questions_and_deviations(
    report: Report, tier: Tier
) -> None:
    _, colour = look_of(report, tier)
    if colour not in (BadgeColour.GREEN, BadgeColour.BRIGHT_GREEN):
        return
    counts = report.summary()
    assert not (counts[Verdict.FAIL] or counts[Verdict.KNOWN] or counts[Verdict.INCONCLUSIVE])
    assert not (report.unclassified or report.undecided or report.idle_findings)
    assert report.exit_code() == 0 and report.scope is Scope.FULL and not report.cut_short and report.ended is None
    assert {result.id for result in report.results} == set(REQUIREMENTS)
    assert report.kit is None and report.provenance is not None and report.provenance.plan is not None
    members = [result for result in report.results if REQUIREMENTS[result.id].tier is tier]
    kept = [result.verdict is Verdict.PASS for result in members]
    assert any(kept) and all(kept) is (colour is BadgeColour.BRIGHT_GREEN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scope": Scope.SMOKE}, f"partial: {len(REQUIREMENTS)}/{len(REQUIREMENTS)} checked"),
        ({"results": ALL_KEPT.results[:33]}, f"partial: 33/{len(REQUIREMENTS)} checked"),
        ({"provenance": replace(PROVENANCE, plan=None)}, "partial: "),
        ({"provenance": replace(PROVENANCE, plan=record_plan(Plan("x", excluded=("JOIN-29",))))}, "partial: "),
        ({"cut_short": True}, "run not finished"),
        ({"ended": Ending(EndKind.TARGET_DOWN, "gone")}, "run not finished"),
        ({"provenance": None}, "outdated (no date)"),
        ({"kit": Kit("0.0.9", 290, "f" * 64)}, "outdated (2026-11)"),
    ],
)
def test_what_is_no_whole_run_of_this_catalogue_is_grey(changes: dict[str, Any], message: str) -> None:
    badge = make_badge(replace(ALL_KEPT, **changes))
    assert badge.message.startswith(message) and badge.colour is BadgeColour.GREY and badge.is_error


def test_each_kind_of_report_has_its_line_and_colour() -> None:
    tail = f" · 2026-11-22 · {DIGEST}"
    first, count, less = CORE[0].replace("-", "_"), len(CORE), f"core {len(CORE) - 1}/{len(CORE)}"
    for report, message, colour in [
        (ALL_KEPT, f"core {count}/{count}{tail}", BadgeColour.BRIGHT_GREEN),
        (full_report(**{first: Verdict.UNSUPPORTED}), f"{less}{tail}", BadgeColour.GREEN),
        (
            full_report(**{first: Verdict.KNOWN}),
            f"{less}, 1 declared{tail}",
            BadgeColour.YELLOW_GREEN,
        ),
        (full_report(**{first: Verdict.INCONCLUSIVE}), f"{less}, 1 open{tail}", BadgeColour.YELLOW),
        (full_report(**{first: Verdict.FAIL}), f"1 violated of {len(REQUIREMENTS)} checked{tail}", BadgeColour.RED),
    ]:
        badge = make_badge(report)
        assert (badge.message, badge.colour) == (message, colour)


def test_a_violation_in_one_tier_reddens_the_badges_of_all() -> None:
    elsewhere = next(id for id, each in REQUIREMENTS.items() if each.tier is Tier.DURABILITY)
    report = full_report(**{elsewhere.replace("-", "_"): Verdict.FAIL})
    assert {look_of(report, tier)[1] for tier in Tier} == {BadgeColour.RED}
    assert look_of(replace(ALL_KEPT, unclassified=(JOIN_29,)))[1] is BadgeColour.RED


@given(reports(), st.sampled_from(Tier), st.data())
def test_a_worse_verdict_never_makes_a_better_badge(report: Report, tier: Tier, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(report.results) - 1))
    before = report.results[place]
    worse = (
        [Verdict.FAIL] if before.verdict is not Verdict.PASS else [each for each in Verdict if each is not Verdict.PASS]
    )
    after = replace(before, verdict=data.draw(st.sampled_from(worse)))
    results = (*report.results[:place], after, *report.results[place + 1 :])
    (old, colour), (new, worse_colour) = look_of(report, tier), look_of(replace(report, results=results), tier)
    assert worse_colour.rank <= colour.rank
    kept = [int(found[1]) for each in (old, new) if (found := re.match(rf"{tier} (\d+)/", each))]
    assert kept == sorted(kept, reverse=True)


# --- rule 4: age ------------------------------------------------------------------------------------------------


def test_day_and_catalogue_are_in_the_message() -> None:
    assert make_badge(ALL_KEPT).message.endswith(f" · 2026-11-22 · {DIGEST}")


def test_a_report_that_is_too_old_is_grey() -> None:
    age = timedelta(days=90)
    assert make_badge(ALL_KEPT, today=STARTED + age, max_age=age).colour is BadgeColour.BRIGHT_GREEN
    old = make_badge(ALL_KEPT, today=STARTED + age + timedelta(seconds=1), max_age=age)
    assert (old.message, old.colour) == ("outdated (2026-11)", BadgeColour.GREY)


# --- rules 5 and 6: subject and target ----------------------------------------------------------------------------


def test_the_label_says_what_was_tested_and_the_title_which_build() -> None:
    svg = to_badge_svg(make_badge(ALL_KEPT))
    assert LABEL == "kafka group protocol" and json.loads(to_badge_json(make_badge(ALL_KEPT)))["label"] == LABEL
    title = ElementTree.fromstring(svg).findtext("{http://www.w3.org/2000/svg}title") or ""
    assert title.startswith(f"acme 1.4.2: core {len(CORE)}/{len(CORE)} kept, limits ")
    for part in ("0 violated, 0 declared, 0 open", f"catalogue {DIGEST}", "2026-11-22", "report sha256 "):
        assert part in title
    nobody = replace(ALL_KEPT, provenance=replace(PROVENANCE, named_by=NamedBy.NOBODY))
    assert "acme 1.4.2 (unnamed build): " in make_badge(nobody).title


# --- rules 7 and 8: files ----------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(to_json(ALL_KEPT), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["fencepost.svg", "fencepost.json", "fencepost.md"])
def test_files_that_do_not_follow_from_the_report_are_found(name: str, saved: Path, tmp_path: Path) -> None:
    badges = tmp_path / "badges"
    assert main(["badge", str(saved), "-o", str(badges)]) == 0
    assert main(["badge", str(saved), "--check", str(badges)]) == 0
    text = (badges / name).read_text(encoding="utf-8")
    (badges / name).write_text(text.replace("core", "all"), encoding="utf-8")
    assert main(["badge", str(saved), "--check", str(badges)]) == 1
    (badges / name).unlink()
    assert main(["badge", str(saved), "--check", str(badges)]) == 1


def test_a_badge_of_another_report_is_found(saved: Path, tmp_path: Path) -> None:
    badges = tmp_path / "badges"
    main(["badge", str(saved), "-o", str(badges)])
    saved.write_text(to_json(replace(ALL_KEPT, seed=1)), encoding="utf-8")
    assert main(["badge", str(saved), "--check", str(badges)]) == 1


def test_the_line_to_paste_links_to_the_report(saved: Path, tmp_path: Path) -> None:
    main(["badge", str(saved), "-o", str(tmp_path), "--tier", "durability"])
    assert (tmp_path / "fencepost-durability.md").read_text(encoding="utf-8").endswith("(report.json)\n")
    link = "https://example.org/a(b).html"
    main(["badge", str(saved), "-o", str(tmp_path), "--link", link])
    assert (tmp_path / "fencepost.md").read_text(encoding="utf-8").endswith("(https://example.org/a%28b%29.html)\n")


def test_the_image_loads_nothing_and_is_read_aloud() -> None:
    hostile = replace(ALL_KEPT, target={"name": "<script>alert(1)</script>\u202e"})
    root = ElementTree.fromstring(to_badge_svg(make_badge(hostile)))
    assert root.get("role") == "img" and root.get("aria-label") == f"{LABEL}: {make_badge(hostile).message}"
    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert tags == {"svg", "title", "metadata", "rect", "g", "text"}
    assert "\u202e" not in to_badge_svg(make_badge(hostile)) and set(HEX) == set(BadgeColour)


def test_shields_reads_the_endpoint() -> None:
    assert json.loads(to_badge_json(make_badge(ALL_KEPT))) == {
        "schemaVersion": 1,
        "label": LABEL,
        "message": make_badge(ALL_KEPT).message,
        "color": "brightgreen",
        "isError": False,
        "cacheSeconds": 3600,
    }


# --- rule 9: reports that do not hold together -------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.PASS])
def test_a_verdict_that_is_raised_by_hand_is_refused(verdict: Verdict) -> None:
    plain = json.loads(to_json(full_report(JOIN_29=verdict)))
    entry = next(each for each in plain["requirements"] if each["id"] == "JOIN-29")
    entry["verdict"] = "pass"
    with pytest.raises(ReportError):
        from_json(json.dumps(plain))


@pytest.mark.parametrize(
    ("report", "path", "value"),
    [
        (replace(ALL_KEPT, scope=Scope.SMOKE), ("outcome", "scope"), "full"),
        (full_report(JOIN_29=Verdict.FAIL), ("outcome", "verdicts", "fail"), 0),
        (full_report(JOIN_29=Verdict.FAIL), ("tiers", "core", "fail"), 0),
        (replace(ALL_KEPT, cut_short=True), ("cut_short",), False),
        (replace(ALL_KEPT, unclassified=(JOIN_29,)), ("unclassified",), []),
        (replace(ALL_KEPT, idle_findings=("spins",)), ("idle_findings",), []),
    ],
)
def test_an_edit_that_would_raise_the_badge_is_refused(report: Report, path: tuple[str, ...], value: object) -> None:
    plain = json.loads(to_json(report))
    place = plain
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ReportError):
        from_json(json.dumps(plain))


def test_the_help_says_what_is_not_detected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["badge", "--help"]) == 0
    assert "forged as a whole is not detected" in " ".join(capsys.readouterr().out.split())


# --- the commands -------------------------------------------------------------------------------------------------


def test_a_run_writes_its_badge(tmp_path: Path) -> None:
    badge, saved = tmp_path / "b.svg", tmp_path / "r.json"
    assert main(["test", "bundled", "--only", "HB-05", "--badge", str(badge), "--json", str(saved)]) == 0
    assert f"partial: 1/{len(REQUIREMENTS)} checked" in badge.read_text(encoding="utf-8")
    main(["badge", str(saved), "-o", str(tmp_path)])
    assert (tmp_path / "fencepost.svg").read_text(encoding="utf-8") == badge.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["report.json"], "one of the arguments -o/--output --check is required"),
        (["report.json", "-o", ".", "--max-age", "soon"], "'soon' is not a number of days such as 90d"),
        (["none.json", "-o", "."], "none.json: No such file"),
        (["trace.jsonl", "-o", "."], "a trace makes no badge"),
        (["report.json", "-o", "report.json"], "report.json"),
    ],
)
def test_mistakes_take_one_line(
    arguments: list[str],
    complaint: str,
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(saved.parent)
    Path("trace.jsonl").write_text('{"fencepost_trace": 1}\n')
    assert main(["badge", *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error and len(error.splitlines()) == 1
