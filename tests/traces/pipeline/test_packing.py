"""Packed environments: what is in them, and how executors come to use them."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.packing import archive_settings, installed_closure, pack_environment

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


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.tgz").write_bytes(b"?")
    with pytest.raises(PipelineError, match="no archive can be read there"):
        archive_settings(tmp_path / "e.tgz", "yarn")
    with pytest.raises(PipelineError, match="for the workers of a cluster"):
        archive_settings(tmp_path / "e.tgz", "local[*]")
    assert main(["pipeline", "pack", "-o", str(tmp_path / "e.tgz")]) == 2
    assert capsys.readouterr().err == f"fencepost: {tmp_path}/e.tgz: File exists\n"
