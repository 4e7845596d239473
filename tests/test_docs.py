"""The documents under docs: their code runs and prints the output that they show; the site has no broken link."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import fencepost
import fencepost.testing
from docs.generator.__main__ import add_addresses
from docs.generator.formats import MEANINGS
from docs.generator.pages import edit_link, make_pages
from fencepost.conformance.cli import COMMANDS
from fencepost.conformance.plan import DEFAULT_REMOTE_SCHEDULES, DEFAULT_SCHEDULES
from fencepost.conformance.profile import SECTIONS, load_profile
from fencepost.conformance.run.schedule import BATCH_SIZE
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.traces.importers.recordings import DEFAULT_SKEW_MS
from tests.support.doc_pages import ADDRESS, commands_in, missing_lines, prepare_folder, run_line
from tests.support.plugin_arguments import run_apart
from tests.support.readme import fenced_blocks
from tests.support.site_links import find_broken_links

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLE = DOCS / "examples" / "pytest"
TUTORIAL = (DOCS / "tutorials" / "coordinator.md").read_text()
HOW_TO = (DOCS / "how-to" / "pytest.md").read_text()
STEPS = (
    {"LEAVE-05"},
    {"SYNC-04", "HB-04", "HB-10"},
    {"JOIN-34", "GEN-10"},
    {"TIMER-09", "TIMER-27"},
    {"SYNC-13", "SYNC-19"},
)
"""What passes after each step of the tutorial, and before it fails."""
MAX_LINES = 150
"""Of the tutorial's coordinator."""
BROKER = f"{sys.executable} -m tests.support.foreground_broker . calm"
APPLICATION = """
def run_my_application(bootstrap):
    from tests.support.tcp_application import consume_one
    assert consume_one(bootstrap) == b"one"
"""


def apply_diff(source: str, diff: str) -> str:
    """The source after one step. Raises `AssertionError` if the lines to be replaced are not there, once."""
    before = "".join(line[1:] for line in diff.splitlines(True) if line[0] in "- ")
    after = "".join(line[1:] for line in diff.splitlines(True) if line[0] in "+ ")
    assert source.count(before) == 1, before
    return source.replace(before, after)


def versions() -> Iterator[str]:
    """The first try, and the coordinator after each step."""
    source = (EXAMPLE / "first_try.py").read_text()
    yield source
    for diff in fenced_blocks(TUTORIAL, "diff"):
        source = apply_diff(source, diff)
        yield source


def failed_cases(lines: list[str]) -> set[str]:
    """The ids of the test cases that failed."""
    return {line.partition("[")[2].partition("]")[0] for line in lines if line.startswith("FAILED")}


def test_the_steps_lead_to_the_coordinator() -> None:
    first, *_, last = versions()
    assert last == (EXAMPLE / "coordinator.py").read_text()
    assert max(len(source.splitlines()) for source in (first, last)) <= MAX_LINES


def test_the_tutorial_says_what_passes_after_each_step() -> None:
    for step, part in zip(STEPS, TUTORIAL.split("```diff")[1:], strict=True):
        passing = next(line for line in part.splitlines() if " pass" in line)
        assert set(re.findall(r"[A-Z]+-\d+", passing)) == step
    assert "ten requirements violated" in TUTORIAL
    assert sum(map(len, STEPS)) == 10


@pytest.mark.slow
@pytest.mark.parametrize("step", [*(pytest.param(step, marks=pytest.mark.acceptance) for step in range(5)), 5])
def test_the_reader_sees_what_the_tutorial_says(pytester: pytest.Pytester, step: int) -> None:
    (pytester.path / "coordinator.py").write_text(list(versions())[step])
    (pytester.path / "test_conformance.py").write_text((EXAMPLE / "test_conformance.py").read_text())
    result = run_apart(pytester)
    assert failed_cases(result.outlines) == set().union(*STEPS[step:])
    shown = filter(None, map(str.strip, fenced_blocks(TUTORIAL, "text")[step].splitlines()))
    assert missing_lines(tuple(shown), result.stdout.str()) == []


def test_the_first_lines_are_the_example() -> None:
    def words(source: str) -> list[str]:
        return re.findall(r"\w+", source.replace("VERSIONS", ""))

    example = (EXAMPLE / "test_conformance.py").read_text()
    assert example.endswith(fenced_blocks(TUTORIAL, "python")[0])
    assert set(words(fenced_blocks(HOW_TO, "python")[0])) <= set(words(example))


@pytest.mark.slow
@pytest.mark.parametrize("place", range(1, 6), ids=["stream", "broker", "schedule", "fake", "recorder"])
def test_the_code_runs(pytester: pytest.Pytester, place: int) -> None:
    pytest.importorskip("confluent_kafka", reason="the extra dev")
    code = fenced_blocks(HOW_TO, "python")[place].replace("./my-broker --port 0", BROKER)
    (pytester.path / "server.py").write_text("from tests.support.stream_servers import Server as Server\n")
    (pytester.path / "test_it.py").write_text(code + APPLICATION)
    result = run_apart(pytester, "--fencepost-target", "bundled", "-k", "not HB-0 or HB-05")
    assert result.ret == 0 and result.parseoutcomes()["passed"] >= 1


@pytest.mark.slow
@pytest.mark.extra("mypy")
def test_the_example_with_types_passes_strict(tmp_path: Path) -> None:
    def check(code: str) -> int:
        (tmp_path / "test_it.py").write_text(code)
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "test_it.py"]
        environment = os.environ | {"MYPYPATH": str(ROOT / ".src")}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode

    code = fenced_blocks(HOW_TO, "python")[-1]
    assert (check(code), check(code.replace("-> TestedTarget", "-> int"))) == (0, 1)


# --- every page


PAGES = sorted(path for folder in ("tutorials", "how-to", "explanation") for path in (DOCS / folder).glob("*.md"))
LONG = {"corpora", "publish", "puzzles", "schedules", "trust"}
"""Pages whose commands take half a minute."""
NEEDS = {"clients": ("kafka",), "corpora": ("pyspark",), "traces": ("dpkt",), "install": ("build", "hatchling")}


def page_parameter(path: Path) -> object:
    """A page, marked with the modules beyond the core that its commands need."""
    marks = [pytest.mark.slow, *(pytest.mark.extra(module) for module in NEEDS.get(path.stem, ()))]
    if path.stem in LONG:
        marks.append(pytest.mark.acceptance)
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """The address of a broker."""
    command = [sys.executable, "-m", "tests.support.foreground_broker", str(tmp_path), "calm"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.stdout.readline().strip()
        process.kill()


ELSEWHERE = (DOCS / "how-to" / "pytest.md", DOCS / "tutorials" / "doors.md")
"""Pages with tests of their own."""
WITH_COMMANDS = [path for path in PAGES if fenced_blocks(path.read_text(), "sh") and path not in ELSEWHERE]


@pytest.mark.parametrize("path", [page_parameter(path) for path in WITH_COMMANDS])
def test_a_reader_who_does_what_a_page_says(path: Path, broker: str, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    environment = prepare_folder(folder, path.read_text())
    if path.stem == "install":
        subprocess.run([sys.executable, "-m", "build", "-w", "-n", "-o", str(folder), str(ROOT)], check=True)
    if path.stem == "ci":
        (folder / "docs").symlink_to(DOCS)
        (folder / "target/release").mkdir(parents=True)
        (folder / "target/release/acme").symlink_to(folder / "my-broker")
        environment["ARGS"] = "--only HB-05"
    for command in commands_in(path.read_text()):
        if shutil.which(command.line.split()[0], path=environment["PATH"]) is None and command.line[:3] in (
            "uvx",
            "pip",
        ):
            continue  # not on this machine
        line = re.sub(r"--schedules \d+", "--schedules 2", command.line.replace("127.0.0.1:19092", "127.0.0.1:0"))
        line = line.replace("--seconds 600", "--seconds 1").replace("/var/lib/kafka/", "")
        line = line.replace('"--schedules 2 --seed 7"', '"--only HB-05"')
        done = run_line(line.replace(ADDRESS, broker), folder, environment)
        assert done.returncode == command.code, f"{command.line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        assert missing_lines(command.shown, done.stdout) == [], f"{command.line}\n{done.stdout[:6000]}"


def test_a_command_that_a_page_gets_wrong_is_found(tmp_path: Path) -> None:
    block = "fencepost judge two-leaders.jsonl   # exit code 1"
    page = f"```sh\n{block}\n```\n\n```text\nFAIL JOIN-37\nno such line\n```\n"
    (command,) = commands_in(page)
    assert (command.line, command.code) == ("fencepost judge two-leaders.jsonl", 1)
    done = run_line(command.line, tmp_path, prepare_folder(tmp_path, page))
    assert done.returncode == 1 and missing_lines(command.shown, done.stdout) == ["no such line"]


def lines_of(example: str) -> int:
    """How long an example is."""
    return len((DOCS / "examples" / example).read_text().splitlines())


NUMBERS = {
    "tutorials/coordinator.md": f"a coordinator in {lines_of('pytest/first_try.py')} lines",
    "tutorials/incident.md": f"a small shop, of {lines_of('incident/server.log')} lines",
    "how-to/clients.md": f"kafka-python in {lines_of('clients/kafka_python_consumer.py')} lines",
    "how-to/pytest.md": f"a test case for each batch of {BATCH_SIZE}",
    "how-to/schedules.md": f"{DEFAULT_SCHEDULES} of them in this process and {DEFAULT_REMOTE_SCHEDULES} over the",
    "how-to/traces.md": f"differ at most (default: {DEFAULT_SKEW_MS})",
}
"""What pages say in numbers; the README, the catalogue and the install page have tests of their own."""


@pytest.mark.parametrize("page", NUMBERS)
def test_a_page_has_the_numbers_of_today(page: str) -> None:
    assert NUMBERS[page] in " ".join((DOCS / page).read_text().split())


@pytest.mark.parametrize(
    "path", [path for path in PAGES if fenced_blocks(path.read_text(), "toml")], ids=lambda path: path.stem
)
def test_profiles_are_profiles(path: Path, tmp_path: Path) -> None:
    for block in fenced_blocks(path.read_text(), "toml"):
        (tmp_path / "profile.toml").write_text(block)
        load_profile(tmp_path / "profile.toml")


def test_no_block_is_of_a_kind_that_nothing_runs() -> None:
    kinds = {kind for path in PAGES for kind in re.findall(r"^```(\w+)$", path.read_text(), re.MULTILINE)}
    assert kinds <= {"sh", "text", "toml", "python", "diff", "docker"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_is_run_or_compared(path: Path) -> None:
    text = path.read_text()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"^ {4}", prose, re.MULTILINE), "code without a fence, which no test runs"
    if path in WITH_COMMANDS and "```text" in text:
        assert text.index("```sh") < text.index("```text"), "an output before any command"


# --- the site


@pytest.fixture(scope="module")
def site_pages() -> dict[str, str]:
    """All pages of the site."""
    return make_pages(DOCS)


@pytest.mark.slow
def test_the_site_has_what_it_should(site_pages: dict[str, str]) -> None:
    assert {f"reference/catalogue/{id}.md" for id in CATALOGUE} <= set(site_pages)
    assert {f"reference/commands/{name}.md" for name in COMMANDS} <= set(site_pages)
    for name in (*fencepost.__all__, *fencepost.testing.__all__):
        assert f"## `{name}`" in site_pages["reference/api/fencepost.md"] + site_pages["reference/api/testing.md"]
    assert "fencepost test" in site_pages["reference/commands/test.md"]


@pytest.mark.slow
def test_no_link_of_the_site_is_broken(site_pages: dict[str, str]) -> None:
    for name, text in site_pages.items():
        if not name.endswith(".md"):
            continue
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            file = target.partition("#")[0]
            if "://" in target or not file:
                continue
            place = os.path.normpath(os.path.join(os.path.dirname(name), file))
            assert place in site_pages, f"{name}: {target}"


def test_every_file_that_a_page_names_is_a_download(site_pages: dict[str, str]) -> None:
    files = {path.name for path in [*(DOCS / "examples").rglob("*"), *(DOCS / "ci").iterdir()] if path.suffix}
    downloads = {Path(name).name for name in site_pages}
    for path in (DOCS / "tutorials").glob("*.md"):
        named = set(re.findall(r"[\w-]+\.[a-z]+", path.read_text())) & files - {"fencepost.toml"}
        assert named <= downloads, f"{path.name}: {named - downloads}"


def test_public_addresses_come_from_one_place() -> None:
    settings = (DOCS / "zensical.toml").read_text()
    assert add_addresses(settings, {}) == settings
    public = {"Documentation": "https://docs.test/", "Repository": "https://code.test/f"}
    project = tomllib.loads(add_addresses(settings, public))["project"]
    assert (project["site_url"], project["repo_url"]) == ("https://docs.test/", "https://code.test/f")
    assert "(https://code.test/f/edit/main/docs/how-to/ci.md)" in edit_link("how-to/ci.md", public["Repository"])
    assert edit_link("how-to/ci.md", "") == ""


def test_pictures_are_not_drawn_too_small_to_read(site_pages: dict[str, str]) -> None:
    shown = re.compile(r"!\[[^\]]*\]\((?:\.\./)*pictures/([\w-]+\.svg)\)(.*)")
    found = [each for text in site_pages.values() for each in shown.findall(text)]
    assert len(found) > len(CATALOGUE) / 2
    for name, attributes in found:
        least = re.fullmatch(r'{ style="min-width: (\d+)px" }', attributes)
        width = re.search(r' width="(\d+)"', site_pages[f"pictures/{name}"])
        assert least and width and 0.8 * int(width[1]) <= int(least[1]) <= int(width[1]), name


def test_the_navigation_names_pages(site_pages: dict[str, str]) -> None:
    named = set(re.findall(r'"([\w/-]+\.md)"', (DOCS / "zensical.toml").read_text()))
    assert named <= set(site_pages) and {name for name in named if "/" in name}


def test_every_key_of_a_profile_has_a_meaning() -> None:
    for section, keys in SECTIONS.items():
        if section not in ("settings", "known"):
            assert set(MEANINGS[section]) == set(keys), section


@pytest.mark.slow
@pytest.mark.extra("zensical")
def test_the_site_is_built(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "docs.generator", "-o", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "reference" / "catalogue" / "JOIN-46" / "index.html").exists()
    assert (tmp_path / "site" / "pictures" / "finding.svg").exists()
    assert (tmp_path / "site" / "pictures.css").exists()
    assert (tmp_path / "site" / "examples" / "incident" / "server.log").exists()
    found = (path for path in (tmp_path / "site").rglob("*") if path.is_file())
    files = {path.relative_to(tmp_path / "site").as_posix(): path for path in found}
    pages = {name: path.read_text() for name, path in files.items() if name.endswith(".html") and name != "404.html"}
    assert len(pages) > len(CATALOGUE) and list(find_broken_links(pages, files)) == []
    broken = pages | {"a.html": '<a href="none/">', "b.html": '<a href="how-to/ci/#none">'}
    assert len(list(find_broken_links(broken, files))) == 2
    home = (tmp_path / "site" / "index.html").read_text()
    assert f"Fencepost {fencepost.__version__}" in home
    assert 'href="./pictures.css"' in home and 'style="min-width: ' in home
