"""The stories that logs tell, and a run of which every kind of log is here."""

from pathlib import Path

from fencepost.traces.events import Lookahead
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.history.builder import GroupTimeline, TraceHistory
from fencepost.traces.history.recorder import make_recorder
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.judge.judge import Judge

DATA = Path(__file__).parents[1] / "traces" / "data" / "orders"
"""A run on Kafka 3.9: Java 2.8 and 4.4, kafka-python, librdkafka and aiokafka in `orders`, two of KafkaJS in `web`."""


def tell(folder: Path, *paths: Path) -> TraceHistory:
    """The history that these logs tell."""
    import_log(paths, folder / "trace.jsonl")
    return tell_trace(folder)


def tell_trace(folder: Path) -> TraceHistory:
    """The history that the trace in a folder tells."""
    header, events = open_trace(folder / "trace.jsonl")
    histories: list[TraceHistory] = []
    recorder = make_recorder("trace", header, histories)
    judging = Judge(header, on_step=recorder.on_step)
    for moment in Lookahead(events).pair_operations():
        recorder.before_event(moment, judging)
        judging.on_event(moment.event, moment.operation)
        recorder.after_event(moment, judging)
    judging.finish()
    recorder.finish()
    return histories[0]


def group_of(history: TraceHistory, name: str) -> GroupTimeline:
    """The timeline of one group."""
    return next(group for group in history.groups if group.group == name)
