"""The installed package: only `fencepost`, with all of its code, from a wheel, an sdist or a checkout without links."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files, requires, version
from pathlib import Path

import pytest

from fencepost import __version__
from tests.support.plugin_arguments import PLUGIN

classifiers = pytest.importorskip("trove_classifiers", reason="the extra dev")
pytestmark = [pytest.mark.extra("build"), pytest.mark.extra("hatchling")]

ROOT = Path(__file__).parent.parent
MAX_MEGABYTES = 120
"""Of an install, as pip makes it without bytecode."""
ROOMS = ("model", "traces", "adapters", "conformance")
CODE = sorted(f"fencepost/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def run_command(*command: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(command, cwd=cwd, env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run_command(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def linkless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as git writes them where links are not supported: each link is a file that names its target."""
    copy = tmp_path_factory.mktemp("checkout") / "fencepost"
    ignore = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".hypothesis")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignore)
    for room in ROOMS:
        link = copy / ".src" / "fencepost" / room
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)
    return copy


@pytest.mark.slow
def test_the_wheel_holds_fencepost_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    metadata = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    assert {name.partition("/")[0] for name in names} == {"fencepost", metadata}
    assert sorted(name for name in names if name.endswith(".py") and name.count("/") > 1) == CODE
    root = {"__init__.py", "__main__.py", "_command.py", "testing.py", "py.typed"}
    assert {f"fencepost/{name}" for name in root} <= set(names)
    entry_points = zipfile.ZipFile(wheel).read(f"{metadata}/entry_points.txt").decode()
    assert f"[pytest11]\nfencepost = {PLUGIN}\n" in entry_points


def test_the_sdist_holds_no_links(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert [member.name for member in archive if member.issym() or member.islnk()] == []


@pytest.mark.slow
def test_the_sdist_is_small_and_both_can_be_built_again(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {member.name.split("/")[1] for member in archive}
    assert not tops & {"tests", ".ci", ".github", "fencepost.pyz", "report.json", "junit.xml"} and "model" in tops
    run_command(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), cwd=ROOT)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in dist.iterdir()
    }


@pytest.mark.slow
def test_a_package_index_would_take_it(dist: Path) -> None:
    pytest.importorskip("twine", reason="the extra dev")
    run_command(sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir()), cwd=ROOT)


def test_an_index_shows_what_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"Framework :: Pytest", "Typing :: Typed"} <= set(project["classifiers"]) and project["keywords"]
    for line in project["classifiers"]:
        assert line in classifiers.classifiers, line
    assert "no such line" not in classifiers.classifiers


PINNED = (
    "README.md",
    "docs/how-to/install.md",
    "docs/ci/gitlab.yml",
    "docs/ci/Dockerfile",
    "CITATION.cff",
    "CHANGELOG.md",
)


@pytest.mark.parametrize("name", PINNED)
def test_every_place_names_this_version(name: str) -> None:
    text = (ROOT / name).read_text()
    found = set(re.findall(r"(?:fencepost[-:=]+|^version: |^## )(\d+\.\d+)", text, re.MULTILINE))
    assert ".".join(__version__.split(".")[:2]) in found
    assert name == "CHANGELOG.md" or len(found) == 1


def test_an_old_python_is_told_what_the_file_needs() -> None:
    main = ROOT / ".src" / "fencepost" / "__main__.py"
    ast.parse(main.read_text(), feature_version=(3, 4))
    script = f"import runpy, sys; sys.version_info = (3, 9, 1); runpy.run_path({str(main)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "fencepost: needs Python 3.11 or newer, and this is Python 3.9\n")


def packages_of(*names: str) -> set[str]:
    """Packages with all that they need on this machine, but for extras."""
    found: set[str] = set()
    for name in names:
        needed = [re.split(r"[^\w.-]", line)[0] for line in requires(name) or () if "extra ==" not in line]
        found |= {name, *packages_of(*(each for each in needed if is_installed(each)))}
    return found


def is_installed(name: str) -> bool:
    """Whether there is a package of this name."""
    with suppress(PackageNotFoundError):
        return bool(version(name))
    return False


def megabytes_of(*names: str) -> float:
    """What packages take without bytecode."""
    paths = [path for name in packages_of(*names) for path in files(name) or () if path.suffix != ".pyc"]
    return sum(path.size or 0 for path in paths) / 1e6


@pytest.mark.slow
def test_what_an_install_takes_is_told(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    own = sum(each.file_size for each in zipfile.ZipFile(wheel).infolist()) / 1e6
    sizes = (megabytes_of("z3-solver"), megabytes_of("hypothesis", "networkx", "pytest"), own)
    told = re.findall(r"^\|.*\| (\d+) \|$", (ROOT / "docs" / "how-to" / "install.md").read_text(), re.MULTILINE)
    assert [int(each) for each in told] == [pytest.approx(size, rel=0.1) for size in sizes]
    assert sum(sizes) <= MAX_MEGABYTES


@pytest.mark.slow
@pytest.mark.extra("uv")
def test_uvx_runs_it_by_its_name_from_an_index(dist: Path, tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "fencepost"
    folder.mkdir(parents=True)
    (wheel,) = dist.glob("*.whl")
    shutil.copy(wheel, folder)
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    uvx = (sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable, "--no-config")
    index = ("--index", folder.parent.as_uri())
    told = run_command(*uvx, *index, "fencepost", "test", "bundled", cwd=tmp_path, UV_TOOL_DIR=str(tmp_path / "tools"))
    assert re.search("^CONFORMANT: ", told, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["wheel", "sdist", "checkout without links"])
def test_it_installs_with_all_its_code(source: str, dist: Path, linkless: Path, tmp_path: Path) -> None:
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    package = {"wheel": wheel, "sdist": sdist, "checkout without links": linkless}[source]
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    run_command(sys.executable, "-m", "pip", "install", *offline, "--target", str(tmp_path), str(package), cwd=tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("fencepost/*/**/*.py")) == CODE
    ask = "import fencepost.model.settings as settings; print(settings.__file__)"
    found = run_command(sys.executable, "-c", ask, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert Path(found.strip()).is_relative_to(tmp_path)
