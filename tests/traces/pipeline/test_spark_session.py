"""Spark sessions: workers run this Python and find Fencepost; an error is one line."""

import signal
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fencepost
from fencepost.traces.pipeline import spark_session
from fencepost.traces.pipeline.errors import PipelineError


def test_workers_are_this_python_and_find_fencepost(spark: SparkSession) -> None:
    def whereabouts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "package": [fencepost.__file__]})

    row = spark.range(1, numPartitions=1).mapInArrow(whereabouts, "python string, package string").collect()[0]
    assert (row.python, row.package) == (sys.executable, fencepost.__file__)


def test_given_settings_override_defaults(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("session")
    settings = spark_session.spark_settings("local[2]", {"spark.ui.enabled": "true", "spark.x": "1"}, folder)
    assert (settings["spark.ui.enabled"], settings["spark.x"]) == ("true", "1")


def test_java_compiles_little_for_a_judge_on_this_machine(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, key = tmp_path_factory.mktemp("session"), spark_session.JAVA_OPTIONS
    given: dict[str, str] = {key: "-XX:+UseZGC"}
    small, large = spark_session.SHORT_BYTES, spark_session.SHORT_BYTES + 1
    for master, conf, size, is_light, is_short in (
        ("local[2]", {}, small, True, True),
        ("local[2]", {}, large, True, False),
        ("local[2]", {}, None, False, False),
        ("local[2]", given, small, False, True),
        ("spark://somewhere:7077", {}, small, False, False),
    ):
        settings = spark_session.spark_settings(master, conf, folder, size)
        assert (spark_session.LIGHT_WORK in settings[key]) is is_light
        assert (spark_session.SHORT_CONF.items() <= settings.items()) is is_short


def test_the_settings_of_this_machine_are_not_those_of_a_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("session")
    assert spark_session.LOCAL_CONF.keys().isdisjoint(
        spark_session.spark_settings("spark://somewhere:7077", {}, folder)
    )


def test_the_handler_of_ctrl_c_is_kept(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_spark_is_one_line() -> None:
    assert spark_session.first_error_line(OSError("\n  first \n second")) == "first"
    assert spark_session.first_error_line(OSError()) == "OSError"
    assert issubclass(PipelineError, ValueError)
