"""The light core: the wheel without its four packages, as one file, in a container, and in tests in other languages."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_pages import make_program

pytestmark = [pytest.mark.slow, pytest.mark.extra("build"), pytest.mark.extra("hatchling")]
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MAX_MEGABYTES = 40
PATH = os.pathsep.join([str(ROOT / ".src"), str(ROOT)])
BROKER = f'#!/bin/sh\nPYTHONPATH="{PATH}" exec "{sys.executable}" -m tests.support.foreground_broker . calm\n'
TESTERS = {
    "go": ("go test -short ./...", "go test -timeout 20m ./..."),
    "rust": ("cargo test --offline", "cargo test --offline -- --ignored"),
    "java": ("mvn -q test", "mvn -q test -DexcludedGroups= -Dgroups=whole"),
}
"""The commands that run the tests of a wrapper in short and whole."""
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "FENCEPOST")}


def run(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command without this checkout on its path."""
    return subprocess.run(words, cwd=cwd, env={**CLEAN, **environment}, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a wheel built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def zipapp(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit as one file."""
    file = tmp_path_factory.mktemp("zipapp") / "fencepost.pyz"
    done = run(str(DOCS / "ci" / "make-zipapp"), str(wheel), str(file), cwd=file.parent)
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without any package."""
    folder = tmp_path_factory.mktemp("bare")
    done = run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder)
    assert done.returncode == 0, done.stderr
    return str(folder / "bin" / "python")


def kit(bare_python: str, zipapp: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the one file."""
    return run(bare_python, str(zipapp), *words, cwd=cwd)


def test_it_judges_replays_reports_and_tests(bare_python: str, zipapp: Path, tmp_path: Path) -> None:
    trace = str(DOCS / "examples" / "finding" / "two-leaders.jsonl")
    assert kit(bare_python, zipapp, "judge", trace, cwd=tmp_path).returncode == 1
    assert "FIXED" in kit(bare_python, zipapp, "replay", trace, "bundled", cwd=tmp_path).stdout
    log = str(DOCS / "examples" / "incident" / "server.log")
    assert kit(bare_python, zipapp, "import", "log", log, "-o", "group.jsonl", cwd=tmp_path).returncode == 0
    told = kit(bare_python, zipapp, "report", "group.jsonl", "--html", "r.html", cwd=tmp_path)
    assert told.returncode == 0 and "10 rebalances" in told.stdout and (tmp_path / "r.html").exists()


def test_a_run_is_the_same_with_and_without_the_packages(bare_python: str, zipapp: Path, tmp_path: Path) -> None:
    words = ("test", "bundled", "--smoke", "--schedules", "8", "--seed", "3", "--json")
    light = kit(bare_python, zipapp, *words, "light.json", cwd=tmp_path)
    whole = run(sys.executable, "-m", "fencepost", *words, "whole.json", cwd=tmp_path, PYTHONPATH=PATH)
    assert light.returncode == whole.returncode == 0, light.stdout + light.stderr
    reports = [json.loads((tmp_path / name).read_text()) for name in ("light.json", "whole.json")]
    for report in reports:
        for name in ("provenance", "seconds"):
            del report[name]
    assert reports[0] == reports[1] and reports[0]["coverage"]["transitions"]


@pytest.mark.parametrize(("words", "package"), [(("prove",), "z3-solver"), (("explore",), "networkx")])
def test_what_needs_a_package_names_it(
    words: tuple[str, ...], package: str, bare_python: str, zipapp: Path, tmp_path: Path
) -> None:
    done = kit(bare_python, zipapp, *words, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and f"pip install {package}" in done.stderr


def test_it_is_small(wheel: Path, zipapp: Path, tmp_path: Path) -> None:
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "--target", str(tmp_path))
    assert run(sys.executable, "-m", "pip", "install", *offline, str(wheel), cwd=tmp_path).returncode == 0
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < MAX_MEGABYTES * 1_000_000 and zipapp.stat().st_size < 3_000_000


def test_the_steps_of_the_image_work(wheel: Path, tmp_path: Path) -> None:
    text = (DOCS / "ci" / "Dockerfile").read_text()
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {name for name, _ in steps} <= {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT"}
    assert run(sys.executable, "-m", "venv", str(tmp_path / "root"), cwd=tmp_path).returncode == 0
    programs = tmp_path / "root" / "bin"
    make_program(programs / "useradd", "#!/bin/sh\n")
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    for name, rest in steps:
        rest = rest.replace("/opt/", f"{tmp_path}/opt/")
        if name == "COPY":
            assert rest == f"fencepost-*.whl {tmp_path}/opt/"
            (tmp_path / "opt").mkdir()
            shutil.copy(wheel, tmp_path / "opt")
        if name == "RUN":
            done = run("sh", "-c", rest, cwd=tmp_path, PATH=path, PIP_NO_INDEX="1")
            assert done.returncode == 0, f"{rest}\n{done.stderr}"
    entry = json.loads(next(rest for name, rest in steps if name == "ENTRYPOINT"))
    done = run(str(programs / entry[0]), "test", "bundled", "--only", "HB-05", cwd=tmp_path, PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "language", ["go", *(pytest.param(name, marks=pytest.mark.acceptance) for name in ("rust", "java"))]
)
def test_the_wrapper_of_a_language(language: str, bare_python: str, zipapp: Path, tmp_path: Path) -> None:
    """Its test passes for a good broker, fails for a wrong one with the report, and says so if the kit cannot run."""
    if shutil.which(TESTERS[language][0].split()[0]) is None:
        pytest.skip(f"{language} is not on this machine")
    folder = tmp_path / language
    shutil.copytree(DOCS / "examples" / language, folder)
    profile = folder / "fencepost.toml"
    profile.write_text(profile.read_text().replace("fencepost serve --port 0", "./acme --port 0"))
    kit = shlex.join([bare_python, str(zipapp)])

    def ends(line: str, manner: str, arguments: str) -> tuple[int, str]:
        make_program(folder / "acme", BROKER.replace(" calm", f" {manner}"))
        done = run(*line.split(), cwd=folder, FENCEPOST=kit, FENCEPOST_ARGS=arguments)
        return done.returncode, done.stdout + done.stderr

    for line in TESTERS[language]:
        code, output = ends(line, "calm", "--only HB-05")
        assert code == 0, output[-4000:]
    code, output = ends(TESTERS[language][0], "calm", "--only NO-SUCH")
    assert code != 0 and "Fencepost could not run" in output and "NO-SUCH" in output
    code, output = ends(TESTERS[language][1], "forgives", "--only HB-04")
    assert code != 0 and "violates the group protocol" in output and "FAIL HB-04" in output


def test_the_wrappers_are_short() -> None:
    drivers = DOCS / "examples" / "clients"
    for path in (DOCS / "examples").rglob("*"):
        if path.suffix in (".go", ".rs", ".java") and drivers not in path.parents:
            lines = [line for line in path.read_text().splitlines() if not re.match(r"\s*(//|/?\*|$)", line)]
            assert len(lines) <= 40, path
