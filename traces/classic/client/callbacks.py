"""Callbacks of a driven client, held against its assignments and its standing."""

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment
from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.classic.client.application import Application, check_event
from fencepost.traces.classic.client.messages import NO_GENERATION, describe_partitions, partitions_in
from fencepost.traces.classic.client.view import COOPERATIVE_ASSIGNORS, MIN_PATIENCE_MS, ClientView, Phase, Standing
from fencepost.traces.events import Event, Operation

AT_ONCE_MS = 20
"""The longest time between a callback and a JoinGroup in which the client certainly has not read anything."""


def judge_callback(view: ClientView, application: Application, event: Event) -> None:
    """The listener is called."""
    evidence, partitions = view.evidence, partitions_in(event)
    observed = f"{event.api}: {describe_partitions(partitions)}"
    title, expected = "A callback outside of a call", "inside poll, unsubscribe or close"
    if not application.calls_anywhere:
        check_event(evidence, application.command is not None, "CALLBACK-01", event, title, expected, observed)
    if application.manual_since is not None and application.manual_since + view.knowledge.grace < event.time:
        title, expected = "A callback about partitions that the application has assigned", "no callback"
        check_event(evidence, False, "CALLBACK-18", event, title, expected, observed)
        return
    if not application.has_joined and event.api != "assigned":
        title, expected = "The first join calls back about partitions that were never there", "assigned"
        check_event(evidence, False, "CALLBACK-17", event, title, expected, observed)
    elif not application.has_called and event.api == "assigned":
        evidence.hold("CALLBACK-17", event.sequence)
    application.has_called = True
    if event.api == "lost" and partitions and not application.is_ending:
        note_loss_of_membership(view, event.time)
    if application.calls_in_parts:
        judge_part(view, application, event)
        return
    if event.api == "assigned":
        judge_assigned(view, application, event)
    else:
        if view.is_cooperative:
            title, expected = f"{event.api} is called with nothing", "no callback, or one with partitions"
            check_event(evidence, bool(partitions), "CALLBACK-19", event, title, expected, observed)
        judge_survival(view, application, event)
        judge_taken(view, application, event)
    judge_seen_assignment(view, application, event)
    if event.api != "assigned":
        application.owned -= partitions
        if not application.is_revoked and event.api == "revoked":
            application.revokes_again |= may_revoke_again(view, event.time)
        application.is_revoked = True
        application.is_lost |= event.api == "lost"
        if event.api == "revoked":
            application.revoked |= partitions
            application.taken |= partitions


def judge_part(view: ClientView, application: Application, event: Event) -> None:
    """The listener is called about one partition of several: an assigned one is in the assignment, and one that a
    cooperative member gives up is not. Whether all were told shows when the member joins again."""
    partitions = partitions_in(event)
    latest = application.assignments[-1] if application.assignments else view.installed
    observed = f"{event.api}: {describe_partitions(partitions)}"
    expected = describe_partitions(latest or frozenset())
    if event.api == "assigned":
        judge_validity(view, application, event)
        title = "assigned is called about what is not assigned"
        if latest is not None:
            check_event(view.evidence, partitions <= latest, "CALLBACK-03", event, title, expected, observed)
        application.owned |= partitions
        for partition in partitions:
            application.positions.pop(partition, None)
            application.out_of_range.discard(partition)
        application.paused -= partitions
    else:
        is_kept = view.is_cooperative and not application.is_ending and not is_reset(view)
        if is_kept and latest is not None and event.api == "revoked":
            title = "A partition is revoked that stays"
            check_event(view.evidence, not partitions & latest, "COOP-02", event, title, f"kept: {expected}", observed)
        application.owned -= partitions
        application.revoked |= partitions
    complete_parts(view, application, event)


def complete_parts(view: ClientView, application: Application, event: Event) -> None:
    """All callbacks about the parts of the last assignment have come."""
    if application.assignments and application.owned == application.assignments[-1]:
        view.evidence.hold("CALLBACK-09", event.sequence)
        application.retained = frozenset()
        application.assignments.clear()
        application.revoked = application.taken = frozenset()
        application.is_revoked, application.is_lost, application.has_been_assigned = False, False, True
        application.last_assigned = event.sequence


def note_loss_of_membership(view: ClientView, time: int) -> None:
    """Partitions are called lost: whoever does that has read the first news that the generation is over. Commits that
    it has prepared before may still come."""
    over = (standing for standing in view.knowledge.standings if has_no_generation(standing))
    if (first := next(over, None)) is not None:
        view.loss = first.sequence, time


def judge_assigned(view: ClientView, application: Application, event: Event) -> None:
    """The listener is called about assigned partitions: all of them, or those that a cooperative member did not own."""
    partitions, owned = partitions_in(event), application.owned
    judge_validity(view, application, event)
    if not application.assignments:
        title, expected = "assigned is called again", "once for each completed rebalance"
        observed = describe_partitions(partitions)
        is_late = view.exchange is not None and view.exchange.is_unapplied
        check_event(view.evidence, False, "MEMBER-30" if is_late else "CALLBACK-09", event, title, expected, observed)
        application.owned |= partitions
        for partition in partitions:
            application.positions.pop(partition, None)  # whoever has it anew begins at what is committed
        return
    kept = owned if view.is_cooperative else frozenset[TopicPartition]()
    fitting = [each for each in application.assignments if each - kept == partitions]
    latest = fitting[-1] if fitting else application.assignments[-1]
    observed = describe_partitions(partitions)
    if view.is_installed_doubtful and view.knowledge.latest.member_id is not None:  # the response has come
        view.installed, view.is_installed_doubtful = latest, False
        if view.exchange is not None:
            view.installed_generation = view.exchange.generation
    if view.is_cooperative:
        gone = owned - latest
        title, expected = "assigned is called before revoked", f"revoked: {describe_partitions(gone)}"
        check_event(view.evidence, not gone, "CALLBACK-08", event, title, expected, observed)
        title, expected = "assigned has partitions that stay", f"assigned: {describe_partitions(latest - owned)}"
        check_event(view.evidence, not partitions & owned, "CALLBACK-08", event, title, expected, observed)
    else:
        title, expected = "The callback does not have the whole assignment", describe_partitions(latest)
        check_event(view.evidence, bool(fitting), "CALLBACK-03", event, title, expected, observed)
    view.evidence.hold("CALLBACK-09", event.sequence)
    if application.has_failed_attempt:
        view.evidence.hold("CALLBACK-10", event.sequence)
        application.has_failed_attempt = False
    for partition in partitions:
        application.positions.pop(partition, None)
        application.out_of_range.discard(partition)
    application.retained = owned & latest if view.is_cooperative else frozenset()
    application.owned = (owned & latest) | partitions if view.is_cooperative else partitions
    application.assignments.clear()
    application.revoked = application.taken = frozenset()
    application.is_revoked, application.is_lost, application.has_been_assigned = False, False, True
    application.revokes_again = False
    application.last_assigned = event.sequence
    application.paused &= application.retained


def judge_validity(view: ClientView, application: Application, event: Event) -> None:
    """An assignment is not applied in a poll that began long after the news that its generation is over."""
    latest = view.knowledge.latest
    if not partitions_in(event) or not has_no_generation(latest):
        return
    is_known = application.began - latest.time > 2 * view.knowledge.grace and application.is_polling
    title, expected = "An assignment is applied whose generation is over", "JoinGroup"
    observed = f"assigned: {describe_partitions(partitions_in(event))}"
    if is_known:
        check_event(view.evidence, False, "MEMBER-30", event, title, expected, observed)


def judge_taken(view: ClientView, application: Application, event: Event) -> None:
    """The listener is called about revoked or lost partitions."""
    if application.is_ending:
        judge_ending_callback(view, application, event)
    elif application.has_ended:
        return  # what it should have told before that is CALLBACK-11
    elif is_reset(view):
        judge_lost(view, application, event)
    elif event.api == "lost":
        return
    elif view.is_cooperative:
        judge_cooperative_revocation(view, application, event)
    else:
        judge_eager_revocation(view, application, event)


def is_reset(view: ClientView) -> bool:
    """Whether the generation of the client is over, and nothing else made it give up its partitions."""
    if view.application.has_asked:
        return all(map(has_no_generation, view.knowledge.standings))
    return has_no_generation(view.knowledge.latest) and view.rebalance_told is None and view.growth is None


def has_no_generation(standing: Standing) -> bool:
    """Whether a standing is one of a client that had a generation and was told that it is over."""
    return standing.generation == NO_GENERATION and standing.requirement in ("MEMBER-12", "MEMBER-13", "HBT-08")


def judge_lost(view: ClientView, application: Application, event: Event) -> None:
    """The generation is over: all partitions are lost."""
    partitions = partitions_in(event)
    if not partitions and (not application.owned or event.api == "revoked"):
        return  # it takes nothing
    if not application.has_lost:
        title, expected = "Lost partitions are not told", f"revoked: {describe_partitions(application.owned)}"
        is_right, observed = partitions == application.owned, f"{event.api}: {describe_partitions(partitions)}"
        check_event(view.evidence, is_right, "CALLBACK-15", event, title, expected, observed)
        return
    if event.api == "revoked" and partitions == application.owned and is_unread(view):
        application.early_revocation = event
        return
    given_up = [application.owned - each for each in application.assignments] if view.is_cooperative else []
    if event.api == "revoked" and partitions in given_up and not all(map(has_no_generation, view.knowledge.standings)):
        return  # it applies the assignment, and has not read yet that this is over
    title, expected = "Partitions of a generation that is over", f"lost: {describe_partitions(application.owned)}"
    is_right = event.api == "lost" and partitions == application.owned
    observed = f"{event.api}: {describe_partitions(partitions)}"
    check_event(view.evidence, is_right, "CALLBACK-05", event, title, expected, observed)


def is_unread(view: ClientView) -> bool:
    """Whether the client may join for another reason than the error that takes its id from it, which it has not read
    yet: its next JoinGroup tells."""
    is_over = all(map(has_no_generation, view.knowledge.standings))
    return may_have_outgrown(view) and view.knowledge.latest.requirement == "MEMBER-13" and not is_over


def may_have_outgrown(view: ClientView) -> bool:
    """Whether topics have grown since the client, as the leader, may have planned."""
    leads = view.exchange is not None and view.exchange.leads
    return view.has_outgrown or (leads and bool(view.former_topics))


def judge_early_revocation(view: ClientView, operation: Operation) -> None:
    """A JoinGroup without an id at once shows that the client had read the error when it revoked its partitions."""
    application = view.application
    if application.early_revocation is None:
        return
    event, application.early_revocation = application.early_revocation, None
    if not operation.body["member_id"] and operation.sent_at - event.time <= AT_ONCE_MS:
        title, partitions = "Partitions of a generation that is over", describe_partitions(partitions_in(event))
        check_event(view.evidence, False, "CALLBACK-05", event, title, f"lost: {partitions}", f"revoked: {partitions}")


def judge_eager_revocation(view: ClientView, application: Application, event: Event) -> None:
    """An eager member revokes everything, once, after its commit."""
    partitions, evidence = partitions_in(event), view.evidence
    observed = describe_partitions(partitions)
    if application.is_lost and not partitions:
        return  # another error of the same kind came late, and it takes nothing
    if application.is_revoked:
        title, expected = "revoked is called again", "once for each rebalance"
        requirement = "CALLBACK-13" if application.has_raised else "CALLBACK-10"
        if partitions or not application.revokes_again:
            check_event(evidence, False, requirement, event, title, expected, observed)
        application.revokes_again = False
        return
    had = application.owned | application.taken  # some revoke again what they have, if they apply no assignment
    had = had.union(*application.assignments) if view.is_installed_doubtful else had
    title, expected = "Not everything is revoked", describe_partitions(application.owned)
    is_right = application.owned <= partitions <= had
    check_event(evidence, is_right, "CALLBACK-02", event, title, expected, observed)
    if partitions:
        judge_commit_before_revocation(view, application, event)


def may_revoke_again(view: ClientView, time: int) -> bool:
    """Whether the client may read an error after which its generation is over only when it has called back."""
    return view.reset_at is not None and time - view.reset_at <= view.knowledge.grace


def judge_commit_before_revocation(view: ClientView, application: Application, event: Event) -> None:
    """An eager member with auto-commit revokes when its commit is over, or given up (CALLBACK-07); one that
    unsubscribes has none to wait for (member.md 2.5)."""
    open_ones = (each for each in view.outstanding.values() if each.connection == view.coordinator_connection)
    commits = [each for each in open_ones if each.api == "OffsetCommit"]
    if application.has_auto_commit and not application.is_unsubscribing:
        since = application.committing_since
        is_over = since is not None and event.time - since >= view.earliest_timeout
        is_waiting = not is_over and any(event.time - each.sent_at < view.rebalance_timeout for each in commits)
        title, expected = "revoked is called during a commit", "the response to OffsetCommit first"
        observed = "OffsetCommit has no response"
        check_event(view.evidence, not is_waiting, "CALLBACK-07", event, title, expected, observed)


def judge_cooperative_revocation(view: ClientView, application: Application, event: Event) -> None:
    """A cooperative member revokes partitions that it was not assigned again, or has unsubscribed from."""
    partitions, evidence = partitions_in(event), view.evidence
    observed = describe_partitions(partitions)
    left = application.wanted
    if left is not None and all(topic not in left for topic, _ in partitions):
        evidence.hold("CALLBACK-04", event.sequence)
    elif not application.assignments:
        title, expected = "Partitions are revoked before JoinGroup", "nothing: the member is cooperative"
        check_event(evidence, not partitions, "CALLBACK-04", event, title, expected, observed)
    else:
        rightly = [application.owned - each for each in application.assignments]
        title, expected = "The wrong partitions are revoked", describe_partitions(rightly[-1])
        check_event(evidence, partitions in rightly, "COOP-02", event, title, expected, observed)


def judge_ending_callback(view: ClientView, application: Application, event: Event) -> None:
    """Unsubscribing and closing: a stable member revokes, one whose generation is over has lost its partitions."""
    standings, partitions = view.knowledge.standings, partitions_in(event)
    is_stable = all(each.phase is Phase.STABLE for each in standings)
    is_stable &= view.rebalance_told is None and view.exchange_outstanding() is None and not view.may_have_left
    is_stable &= not view.is_unheard(event.time, view.knowledge.grace)
    # It may have closed its connection, and have waited for JoinGroup until then.
    is_stable &= view.coordinator_lost is None or view.coordinator_lost < application.began
    is_stable &= view.exchange is not None and view.exchange.operation is view.join  # it waits until that succeeds
    observed = f"{event.api}: {describe_partitions(partitions)}"
    expected = describe_partitions(application.owned)
    if is_stable and not view.is_cooperative and partitions:
        judge_commit_before_revocation(view, application, event)
    title = "The callback of a client that ends is wrong"
    if is_stable and application.owned:
        is_right = event.api == "revoked" and partitions == application.owned
        check_event(view.evidence, is_right, "CALLBACK-11", event, title, f"revoked: {expected}", observed)
    elif application.owned and application.has_lost and is_unstable(view, application, event.time):
        check_event(view.evidence, event.api == "lost", "CALLBACK-11", event, title, f"lost: {expected}", observed)


def is_unstable(view: ClientView, application: Application, time: int) -> bool:
    """Whether the generation of the client is certainly over, or a rebalance under way."""
    return all(map(has_no_generation, view.knowledge.standings)) or is_rebalancing(view, application, time)


def is_rebalancing(view: ClientView, application: Application, time: int) -> bool:
    """Whether the client has certainly waited for JoinGroup or SyncGroup since the call under way began: it has not
    given the request up, as it would without its connection or after a while."""
    waiting = view.exchange_outstanding()
    if waiting is None or waiting.handle > application.command_sequence or view.coordinator_lost is not None:
        return False
    return time - waiting.sent_at < MIN_PATIENCE_MS and waiting.connection not in view.doubtful


def judge_survival(view: ClientView, application: Application, event: Event) -> None:
    """An error of a heartbeat that says nothing of the membership costs nothing."""
    told, latest = application.survived, view.knowledge.latest
    if told is None or application.is_ending or application.has_asked or latest.phase is not Phase.STABLE:
        return
    has_grown = view.growth is not None or may_have_outgrown(view)
    if view.rebalance_told is None and not has_grown and latest.sequence < told.sequence:
        title, expected = "A heartbeat that fails costs the client its partitions", "no callback"
        check_event(view.evidence, False, "HBT-17", event, title, expected, event.api)


def judge_seen_assignment(view: ClientView, application: Application, event: Event) -> None:
    """The listener sees the old assignment while partitions are taken, and the new one when they are assigned."""
    if "assignment" in event.body:
        seen, title = partitions_in(event, "assignment"), f"The listener sees another assignment in {event.api}"
        expected, observed = describe_partitions(application.owned), describe_partitions(seen)
        check_event(view.evidence, seen == application.owned, "CALLBACK-06", event, title, expected, observed)


def judge_callbacks_before_join(view: ClientView, application: Application, operation: Operation) -> None:
    """A JoinGroup arrives: an eager member has given up everything, and each completed rebalance was called back."""
    application.kept = frozenset()
    if view.is_ending or not view.protocols:
        return
    if view.is_installed_doubtful:
        application.assignments.clear()
    left = [each for each in application.assignments if not (application.calls_in_parts and each == application.owned)]
    if left and view.knowledge.standings[0].phase is Phase.STABLE and not view.foreign_topics:
        title, expected = "A completed rebalance without a callback", "assigned"
        view.check(False, "CALLBACK-09", operation, title, expected, "none before JoinGroup")
    if view.is_cooperative or not application.has_been_assigned:
        return
    if application.has_ended:
        application.owned = frozenset()  # whether it was told that is CALLBACK-11
        return
    title, expected = "JoinGroup before the partitions are given up", "a callback before JoinGroup"
    observed = f"the application still has {describe_partitions(application.owned)}"
    of_lost = "CALLBACK-05" if application.has_lost else "CALLBACK-15"
    requirements = [of_lost if is_reset(view) else "CALLBACK-02"]
    if application.has_raised:
        view.evidence.hold("CALLBACK-13", operation.handle - 1)
        application.has_raised = False
    if not view.protocols.isdisjoint(COOPERATIVE_ASSIGNORS):
        requirements += ["COOP-15", "MEMBER-35"]
    application.kept = application.owned
    for requirement in requirements:
        view.check(not application.owned, requirement, operation, title, expected, observed)


# --- Listeners that do something: they raise, they commit, or they know nothing of lost partitions.


def note_callback(view: ClientView, application: Application, event: Event) -> None:
    """A listener is called that raises, or commits."""
    application.in_callback = None
    if event.body.get("raises"):
        application.raised = event
        application.has_raised |= event.api == "revoked"
    if event.body.get("commits"):
        application.in_callback, application.has_asked_in_callback = event, True


def judge_end_of_call(view: ClientView, application: Application, event: Event) -> None:
    """A call of the application ends in which a listener has raised: it fails."""
    raised, application.raised = application.raised, None
    application.in_callback = None
    if raised is not None:
        title, expected = f"A listener raises in {raised.api}, and the call succeeds", "a failure"
        check_event(view.evidence, "error" in event.body, "CALLBACK-12", event, title, expected, "success")


def judge_hand_over(view: ClientView, application: Application, event: Event) -> None:
    """Another member is assigned partitions: the client has given them up by then, if it is in that generation. One
    that is not has been evicted, and may not know it yet."""
    generation = view.generations_of_others.pop(event.of or -1, None)
    if event.body.get("error_code") or view.installed is None:
        return
    if view.exchange is None or view.exchange.generation != generation:
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
        view.evidence, not both, "CALLBACK-14", event, title, expected, f"both have {describe_partitions(both)}"
    )
