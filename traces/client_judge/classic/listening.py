"""Listeners that do something: they raise, they commit, or they know nothing of lost partitions."""

from collections.abc import Iterable

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages.parsing import read_offsets
from fencepost.traces.client_judge.classic.application import Application, check_event
from fencepost.traces.client_judge.classic.callbacks import partitions_in
from fencepost.traces.client_judge.classic.news import describe_partitions, generation_in
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.events import Event, Operation


def note_callback(state: ClientState, application: Application, event: Event) -> None:
    """A listener is called that raises, or commits."""
    if event.body.get("raises"):
        application.raised = event
        application.has_raised |= event.api == "revoked"
    if event.body.get("commits"):
        state.commits.in_callback, state.commits.has_asked_in_callback = event, True


def judge_end_of_call(state: ClientState, application: Application, event: Event) -> None:
    """A call of the application ends in which a listener has raised: it fails."""
    raised, application.raised = application.raised, None
    if raised is not None:
        title, expected = f"A listener raises in {raised.api}, and the call succeeds", "a failure"
        check_event(state.evidence, "error" in event.body, "CALLBACK-12", event, title, expected, "success")


def judge_commit_in_callback(state: ClientState, operation: Operation) -> None:
    """The commit of a listener arrives: before JoinGroup under the generation that is about to end, after SyncGroup
    under the new one."""
    called = state.commits.in_callback
    if called is None:
        return
    state.commits.in_callback = None
    expected, sent = state.installed_generation, generation_in(operation)
    title = f"A commit in {called.api} is of another generation"
    state.check(sent == expected, "CALLBACK-16", operation, title, f"generation {expected}", f"generation {sent}")
    if called.api == "revoked" and state.application is not None:
        left_out = uncommitted_partitions(state, state.application, operation, partitions_in(called))
        title, observed = "A commit in revoked leaves something out", f"nothing of {describe_partitions(left_out)}"
        records = "what was returned of the partitions that are revoked"
        state.check(not left_out, "CALLBACK-16", operation, title, records, observed)


def uncommitted_partitions(
    state: ClientState, application: Application, last: Operation, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    """The partitions of which records were returned that no commit has covered, up to this one."""
    sent = dict(application.starts) | application.committed
    for commit in (*(each for each in state.outstanding.values() if each.api == "OffsetCommit"), last):
        sent |= {partition: row.offset for partition, row in read_offsets(commit.body, state.topic_names)}
    known = application.positions.keys() - application.sought
    return frozenset(each for each in known & set(partitions) if sent.get(each, -1) < application.positions[each])


def judge_join_after_callback(state: ClientState, operation: Operation) -> None:
    """JoinGroup arrives, and a listener has tried to commit before it."""
    called, state.commits.in_callback = state.commits.in_callback, None
    if called is not None and called.api == "revoked" and state.installed is not None:
        title, expected = "A commit in a callback is not sent", "OffsetCommit before JoinGroup"
        state.violate("CALLBACK-16", operation, title, expected, "JoinGroup")


def judge_hand_over(state: ClientState, application: Application, event: Event) -> None:
    """Another member is assigned partitions: the client has given them up by then, if it is in that generation. One
    that is not has been evicted, and may not know it yet."""
    generation = state.generations_of_others.pop(event.of or -1, None)
    if event.body.get("error_code") or state.installed is None:
        return
    if state.exchange is None or state.exchange.generation != generation:
        return
    try:
        given = frozenset(decode_assignment(event.body.get("assignment") or b""))
    except ConsumerProtocolError:
        return
    if not given or not application.has_been_assigned:
        return
    both = given & application.owned
    title, expected = "Another member has what was not given up", "revoked before that"
    check_event(
        state.evidence, not both, "CALLBACK-14", event, title, expected, f"both have {describe_partitions(both)}"
    )
