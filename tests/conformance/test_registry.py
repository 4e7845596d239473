"""The registry: the rules for entries, the site made of them, and runs that are reproduced."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost import run
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.registry import RegistryError, find_differences, read_entries, read_entry
from fencepost.conformance.reports.registry_site import build_site, to_feed, version_order
from fencepost.conformance.results import Ending, EndKind, NamedBy, Report, RequirementResult, Scope, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from tests.support.fake_runner import FakeRunner
from tests.support.faulty_coordinators import FORGIVING
from tests.support.html_reader import HtmlReader
from tests.support.whole_reports import ALL_KEPT, PROVENANCE, REQUIREMENTS, full_report

Capture = pytest.CaptureFixture[str]
COMMITTED = Path(__file__).parents[2] / "docs" / "registry"
ABOUT = 'name = "Acme"\nlanguage = "Rust"\nlicense = "MIT"\n[answers]\nJOIN-29 = "fixed in <1.5>"\n'
HOSTILE = "</script><img src=x onerror=alert(1)> \u202e"


def add_entry(root: Path, version: str, report: Report, name: str = "acme", about: str = ABOUT) -> Path:
    folder = root / "coordinators" / name / version
    folder.mkdir(parents=True)
    (folder.parent / "about.toml").write_text(about)
    (folder / "report.json").write_text(to_json(report), encoding="utf-8")
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Two versions: the second one breaks a requirement that the first one keeps."""
    root = tmp_path / "registry"
    add_entry(root, "1.4.2", ALL_KEPT)
    add_entry(root, "1.10.0", replace(full_report(JOIN_29=Verdict.FAIL), target={"name": "acme", "version": "1.10.0"}))
    return root


def check(path: Path, capsys: Capture) -> tuple[int, str]:
    code = main(["registry", "check", str(path)])
    return code, capsys.readouterr().out


def test_a_sound_registry_has_no_problem(registry: Path, capsys: Capture) -> None:
    assert check(registry, capsys) == (0, "2 reports: 0 problems\n")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cut_short": True}, "did not come to its end"),
        ({"ended": Ending(EndKind.TARGET_DOWN, "gone")}, "did not come to its end"),
        ({"scope": Scope.SMOKE}, "did not put the whole catalogue to the test"),
        ({"results": ALL_KEPT.results[:100]}, "did not put the whole catalogue to the test"),
        ({"provenance": None}, "does not say when the run started"),
        ({"provenance": replace(PROVENANCE, named_by=NamedBy.NOBODY)}, "nobody names the target"),
        ({"target": {"name": "acme", "version": "2"}}, "the report is on version '2'"),
    ],
)
def test_a_report_that_is_not_of_a_whole_named_run_is_found(
    changes: dict[str, object], problem: str, registry: Path, capsys: Capture
) -> None:
    file = registry / "coordinators" / "acme" / "1.4.2" / "report.json"
    file.write_text(to_json(replace(ALL_KEPT, **changes)))  # type: ignore[arg-type]
    code, text = check(registry, capsys)
    assert code == 1 and problem in text


@pytest.mark.parametrize(
    ("break_entry", "problem"),
    [
        (lambda folder: (folder / "report.json").write_text("{}"), "report.json: not a Fencepost report"),
        (lambda folder: (folder.parent / "about.toml").unlink(), "about.toml: No such file"),
        (lambda folder: (folder.parent / "about.toml").write_text("name = 1"), "about.toml: language is missing"),
        (lambda folder: (folder.parent / "about.toml").write_text(f"{ABOUT}X = 1"), "answers is not a table of texts"),
        (lambda folder: (folder.parent / "about.toml").write_text(f"stars = 5\n{ABOUT}"), "unknown key 'stars'"),
        (lambda folder: (folder.parent / "about.toml").write_text(f"official = 1\n{ABOUT}"), "official is neither"),
        (lambda folder: (folder / "profile.toml").write_text("[timing]\ngrace_ms = 1\n"), "differs from the one"),
        (lambda folder: (folder / "profile.toml").write_text("[timing]\nx = 1\n"), "profile.toml"),
        (lambda folder: (folder / "fencepost.svg").write_text("<svg/>"), "fencepost.svg does not follow"),
        (lambda folder: folder.rename(folder.with_name("9")), "the report is on version '1.4.2'"),
        (
            lambda folder: (folder.parent / "about.toml").write_text(f'{ABOUT}NO-01 = "x"'),
            "an answer to 'NO-01', which is no requirement",
        ),
    ],
)
def test_what_is_wrong_with_an_entry_is_found(
    break_entry: Callable[[Path], object], problem: str, registry: Path, capsys: Capture
) -> None:
    break_entry(registry / "coordinators" / "acme" / "1.4.2")
    code, text = check(registry, capsys)
    assert code == 1 and problem in text


def test_a_verdict_that_is_raised_by_hand_is_found(registry: Path, capsys: Capture) -> None:
    file = registry / "coordinators" / "acme" / "1.10.0" / "report.json"
    file.write_text(file.read_text().replace('"verdict": "fail"', '"verdict": "pass"'))
    code, text = check(registry, capsys)
    assert code == 1 and "does not agree with the rest of the report" in text


def test_the_traces_of_failures_are_judged_again(tmp_path: Path, capsys: Capture) -> None:
    """A failure whose trace shows nothing wrong is found; one with its own trace is not."""
    faulty = run(InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING), only=["HB-04", "HB-05"])
    wrong = faulty.result("HB-04")
    assert wrong.verdict is Verdict.FAIL and any(failure.excerpt for failure in wrong.failures)
    results = tuple(wrong if each.id == wrong.id else each for each in ALL_KEPT.results)
    folder = add_entry(tmp_path, "1.4.2", replace(ALL_KEPT, results=results))
    assert check(tmp_path, capsys) == (0, "1 report: 0 problems\n")
    other = RequirementResult("JOIN-29", Verdict.FAIL, checks=1, failures=wrong.failures)
    swapped = tuple(other if each.id == other.id else each for each in results)
    (folder / "report.json").write_text(to_json(replace(ALL_KEPT, results=swapped)))
    code, text = check(tmp_path, capsys)
    assert code == 1 and "JOIN-29: judged again, no trace in the report violates it" in text and "HB-04" not in text


def test_a_folder_without_reports_takes_one_line(tmp_path: Path, capsys: Capture) -> None:
    assert main(["registry", "check", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "no report.json in it" in error and len(error.splitlines()) == 1
    with pytest.raises(RegistryError):
        list(read_entries(tmp_path))


# --- the site -----------------------------------------------------------------------------------------------------


def test_the_site_has_a_page_for_everything_and_every_link_leads_somewhere(registry: Path) -> None:
    site = build_site(list(read_entries(registry)))
    for name, text in site.items():
        if name.endswith(".html"):
            page = HtmlReader(text)
            assert page.tags.count("h1") == 1 and page.loaded == [] and page.handlers == [], name
            for link in page.links:
                path, _, place = link.partition("#")
                if path and not link.startswith("https://"):
                    target = Path("/", name).parent.joinpath(path).resolve().relative_to("/").as_posix()
                    assert target in site, f"{name} links to {link}"
                    assert not place or f'id="{place}"' in site[target]
    assert {f"requirements/{id}.html" for id in REQUIREMENTS} <= site.keys()
    assert build_site(list(read_entries(registry))) == site


def test_a_requirement_tells_who_keeps_it_and_what_the_maintainers_say(registry: Path) -> None:
    page = build_site(list(read_entries(registry)))["requirements/JOIN-29.html"]
    assert page.index("1.4.2") < page.index("1.10.0")  # versions are ordered as numbers
    assert "✓ pass" in page and "✗ fail" in page and "fixed in &lt;1.5&gt;" in page


def test_versions_over_time_show_what_broke_and_badges_have_stable_paths(registry: Path) -> None:
    site = build_site(list(read_entries(registry)))
    assert "newly broken: JOIN-29" in site["coordinators/acme/index.html"]
    pinned, latest = (site[f"badges/coordinators/acme/{each}/fencepost.json"] for each in ("1.10.0", "latest"))
    assert json.loads(latest)["color"] == "red" and latest == pinned
    assert json.loads(site["badges/coordinators/acme/1.4.2/fencepost-durability.json"])["color"] == "brightgreen"
    index = json.loads(site["index.json"])
    assert [(each["implementation"], each["version"]) for each in index["entries"]] == [
        ("acme", "1.4.2"),
        ("acme", "1.10.0"),
    ]


def test_texts_do_no_harm(tmp_path: Path) -> None:
    about = f"name = '{HOSTILE}'\nlanguage = '{HOSTILE}'\nlicense = 'x'\nnotes = '{HOSTILE}'\nurl = 'javascript:x'\n"
    add_entry(tmp_path, "1.4.2", replace(ALL_KEPT, target={"name": HOSTILE, "version": "1.4.2"}), about=about)
    for name, text in build_site(list(read_entries(tmp_path))).items():
        if name.endswith(".html"):
            page = HtmlReader(text)
            assert "img" not in page.tags and not any(link.startswith("javascript") for link in page.links)
            assert "\u202e" not in text


def test_the_command_writes_the_site(registry: Path, tmp_path: Path) -> None:
    assert main(["registry", "build", str(registry), "-o", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "coordinators" / "acme" / "1.4.2" / "index.html").is_file()


def test_versions_are_ordered_as_numbers() -> None:
    versions = ["1.10.0", "1.9", "2.0-rc1", "2.0", "1.9.1"]
    assert sorted(versions, key=version_order) == ["1.9", "1.9.1", "1.10.0", "2.0", "2.0-rc1"]


# --- reproduction -------------------------------------------------------------------------------------------------


def test_a_run_is_reproduced_with_its_own_plan(registry: Path, capsys: Capture) -> None:
    entry = str(registry / "coordinators" / "acme" / "1.10.0")
    runner = FakeRunner(report=ALL_KEPT)
    assert main(["registry", "reproduce", entry, "--target", "127.0.0.1:9092"], runner) == 1
    assert "JOIN-29: fail in the registry, pass now" in capsys.readouterr().out
    (plan,) = runner.calls
    assert getattr(plan, "target", "") == "127.0.0.1:9092" and getattr(plan, "seed", None) == 0
    same = FakeRunner(report=read_entry(Path(entry)).report)
    assert main(["registry", "reproduce", entry, "--target", "127.0.0.1:9092"], same) == 0


def test_what_a_run_left_open_is_no_difference() -> None:
    undecided = full_report(JOIN_29=Verdict.INCONCLUSIVE)
    assert list(find_differences(ALL_KEPT, undecided)) == list(find_differences(undecided, ALL_KEPT)) == []


def test_a_run_that_cannot_be_started_again_is_told(registry: Path, capsys: Capture) -> None:
    assert main(["registry", "reproduce", str(registry / "coordinators" / "acme" / "1.10.0")]) == 2
    assert "no profile.toml that starts the target; name one with --target" in capsys.readouterr().err
    assert main(["registry", "reproduce", str(registry)]) == 2
    assert "has 2 entries; name the folder of one version" in capsys.readouterr().err


# --- the committed reports ----------------------------------------------------------------------------------------


def test_the_committed_reports_have_the_form_and_follow_from_runs(capsys: Capture) -> None:
    """Not their age: a report on an older catalogue stays, and its badge says so."""
    code, text = check(COMMITTED, capsys)
    assert code == 0, text
    assert {entry.implementation for entry in read_entries(COMMITTED)} >= {"fencepost-bundled"}


@pytest.mark.slow
@pytest.mark.parametrize("shelf", ["coordinators", "push", "regions"])
def test_the_report_on_what_is_bundled_is_reproduced(shelf: str, tmp_path: Path, capsys: Capture) -> None:
    entry = tmp_path / shelf / "fencepost-bundled"
    shutil.copytree(COMMITTED / shelf / "fencepost-bundled", entry)
    assert main(["registry", "reproduce", str(entry)]) == 0
    assert "CONFORMANT" in capsys.readouterr().out


ATOM = "{http://www.w3.org/2005/Atom}"


def test_the_feed_has_the_newest_report_first(registry: Path) -> None:
    later = replace(PROVENANCE, started="2031-01-01T00:00:00Z")
    add_entry(registry, "1.11.0", replace(ALL_KEPT, provenance=later), about=ABOUT, name="other")
    site = build_site(list(read_entries(registry)))
    feed = ElementTree.fromstring(site["feed.xml"])
    titles = [entry.findtext(f"{ATOM}title") for entry in feed.iter(f"{ATOM}entry")]
    assert titles[0] == "Acme 1.11.0" and len(titles) == 3
    assert feed.findtext(f"{ATOM}updated") == later.started
    for entry in feed.iter(f"{ATOM}entry"):
        assert all(entry.findtext(f"{ATOM}{name}") for name in ("id", "updated", "summary"))
        link = entry.find(f"{ATOM}link")
        assert link is not None and link.attrib["href"] in site
    assert "feed.xml" in site["index.html"]


def test_a_feed_takes_hostile_texts_and_no_report(tmp_path: Path) -> None:
    assert len(ElementTree.fromstring(to_feed([]))) == 6
    add_entry(tmp_path, "1", ALL_KEPT, about=f"name = '{HOSTILE}'\nlanguage = 'C'\nlicense = 'MIT'\n")
    feed = ElementTree.fromstring(to_feed(list(read_entries(tmp_path))))
    assert "<img" in str(feed.findtext(f"{ATOM}entry/{ATOM}title"))


def test_the_map_shows_who_differs(registry: Path) -> None:
    page = build_site(list(read_entries(registry)))["index.html"]
    (row,) = (each for each in page.split("<tr>") if "requirements/JOIN-29.html" in each)
    assert 'aria-label="JOIN-29 fail"' in row and "\\xa0" not in page
