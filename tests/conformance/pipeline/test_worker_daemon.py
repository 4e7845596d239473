"""Workers of Spark are forked from a process that has the judge imported."""

import runpy
import sys
from collections.abc import Mapping

import pytest

from fencepost.conformance.pipeline.worker_daemon import DAEMON_CONF
from fencepost.traces.pipeline.spark_session import DAEMON_MODULE


def test_the_module_that_spark_starts_imports_the_judge_and_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[bool] = []
    name = DAEMON_CONF[DAEMON_MODULE]
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("pyspark.daemon.manager", lambda: served.append(True))
    found: Mapping[str, object] = runpy.run_module(name, run_name="__main__")
    assert served and {"shard_findings", "query_corpus"} <= found.keys()
