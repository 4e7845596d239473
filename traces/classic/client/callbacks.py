"""Callbacks of a driven client, held against its assignments and its standing: a monitor."""

from dataclasses import dataclass, field

from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.errors import Error
from fencepost.traces.classic.client.messages import (
    MOVED,
    NO_GENERATION,
    UNSUPPORTED,
    describe_partitions,
    partitions_in,
)
from fencepost.traces.classic.client.refusals import refusal_in
from fencepost.traces.classic.client.view import (
    COOPERATIVE_ASSIGNORS,
    MIN_PATIENCE_MS,
    ClientView,
    check_request,
    has_no_generation,
    is_reset,
    may_have_outgrown,
)
from fencepost.traces.client_judge.monitors import Findings, Seen, after, before, build_pass, check
from fencepost.traces.events import Event, Operation

AT_ONCE_MS = 20
"""The longest time between a callback and a JoinGroup in which the client certainly has not read anything."""
ATTEMPT_ERRORS = MOVED | {Error.REBALANCE_IN_PROGRESS}
"""The errors of JoinGroup and SyncGroup that cost no generation."""
HARMLESS_ERRORS = frozenset({Error.GROUP_AUTHORIZATION_FAILED, Error.UNKNOWN_SERVER_ERROR})
"""The errors of Heartbeat that say nothing of the membership."""


@dataclass(slots=True)
class Callbacks:
    """What the listener was called about."""

    has_called: bool = False
    has_joined: bool = False
    """A SyncGroup has succeeded."""
    is_revoked: bool = False
    """Partitions were revoked or lost since the last callback about assigned ones, or assignment."""
    is_lost: bool = False
    """Partitions were lost since then."""
    taken: frozenset[TopicPartition] = frozenset()
    """Those that were revoked since the last callback about assigned ones."""
    revokes_again: bool = False
    """The client may have read an error that ends its generation between its callback and JoinGroup: it calls back once
    more, about nothing."""
    early_revocation: Event | None = None
    """A callback about revoked partitions that came while the client might not have read yet that they are lost."""
    has_failed_attempt: bool = False
    """A JoinGroup or SyncGroup has failed since the last callback about assigned partitions, at no cost of the
    generation."""
    raised: Event | None = None
    """The callback of the call under way that raises."""
    has_raised: bool = False
    """The callback about revoked partitions has raised, since the last JoinGroup."""
    survived: Event | None = None
    """The response to Heartbeat that should cost the client nothing."""
    generations: dict[int, int] = field(default_factory=dict)
    """The generations in which other members ask for their assignments, by the sequence numbers of the requests."""

    # --- What the client is told.

    @after("JoinGroup response", "SyncGroup response")
    def take_answer(self, view: ClientView, seen: Seen) -> None:
        """The response to JoinGroup or SyncGroup leaves."""
        operation, event, error = seen.request, seen.event, seen.event.body.get("error_code", 0)
        if operation.api == "SyncGroup" and not error and not refusal_in(view, operation, event):
            self.has_joined, self.is_revoked, self.is_lost = True, False, False
        self.has_failed_attempt |= error in ATTEMPT_ERRORS

    @after("Heartbeat response")
    def take_heartbeat(self, view: ClientView, seen: Seen) -> Findings:
        """The response to Heartbeat leaves."""
        error = seen.event.body.get("error_code", 0)
        if error in HARMLESS_ERRORS:
            self.survived = seen.event
        elif not error and self.survived is not None:
            self.survived = None
            yield build_pass("HBT-17", seen.event.sequence)

    @after("foreign SyncGroup request")
    def take_foreign_sync(self, view: ClientView, seen: Seen) -> None:
        """Another member asks for its assignment."""
        self.generations[seen.event.sequence] = seen.event.body.get("generation_id", NO_GENERATION)

    @after("foreign SyncGroup response")
    def judge_hand_over(self, view: ClientView, seen: Seen) -> Findings:
        """Another member is assigned partitions: the client has given them up by then, if it is in that generation. One
        that is not has been evicted, and may not know it yet."""
        event, generation = seen.event, self.generations.pop(seen.event.of or -1, None)
        is_current = view.exchange is not None and view.exchange.generation == generation
        if event.body.get("error_code") or view.installed is None or not is_current:
            return
        try:
            given = frozenset(decode_assignment(event.body.get("assignment") or b""))
        except ConsumerProtocolError:
            return
        if given and view.application.has_been_assigned:
            both = given & view.application.owned
            title, expected = "Another member has what was not given up", "revoked before that"
            yield check(not both, "CALLBACK-14", event, title, expected, f"both have {describe_partitions(both)}")

    # --- Callbacks.

    @before("callback")
    def judge_callback(self, view: ClientView, seen: Seen) -> Findings:
        """The listener is called."""
        event, application, partitions = seen.event, view.application, partitions_in(seen.event)
        self.has_raised |= bool(event.body.get("raises")) and event.api == "revoked"
        self.raised = event if event.body.get("raises") else self.raised
        observed = describe_callback(event)
        if not application.calls_anywhere:
            title, expected = "A callback outside of a call", "inside poll, unsubscribe or close"
            yield check(application.command is not None, "CALLBACK-01", event, title, expected, observed)
        if view.is_by_hand(event.time):
            title, expected = "A callback about partitions that the application has assigned", "no callback"
            yield check(False, "CALLBACK-18", event, title, expected, observed)
            return
        if not self.has_joined and event.api != "assigned":
            title, expected = "The first join calls back about partitions that were never there", "assigned"
            yield check(False, "CALLBACK-17", event, title, expected, observed)
        elif not self.has_called and event.api == "assigned":
            yield build_pass("CALLBACK-17", event.sequence)
        self.has_called = True
        if application.calls_in_parts:
            yield from self.judge_part(view, event)
        elif event.api == "assigned":
            yield from self.judge_assigned(view, event)
        else:
            if view.is_cooperative:
                title, expected = f"{event.api} is called with nothing", "no callback, or one with partitions"
                yield check(bool(partitions), "CALLBACK-19", event, title, expected, observed)
            yield from self.judge_survival(view, event)
            yield from self.judge_taken(view, event)
            yield from self.judge_seen_assignment(view, event)
            self.note_taken(view, event)

    def note_taken(self, view: ClientView, event: Event) -> None:
        """Partitions are revoked or lost; a client may read an error that ends its generation when it has revoked."""
        if event.api == "revoked":
            is_fresh = view.reset_at is not None and event.time - view.reset_at <= view.knowledge.grace
            self.revokes_again |= is_fresh and not self.is_revoked
            self.taken |= partitions_in(event)
        self.is_revoked = True
        self.is_lost |= event.api == "lost"

    def judge_part(self, view: ClientView, event: Event) -> Findings:
        """The listener is called about one partition of several: an assigned one is in the assignment, and one that a
        cooperative member gives up is not. Whether all were told shows when the member joins again."""
        application, partitions = view.application, partitions_in(event)
        latest = application.assignments[-1] if application.assignments else view.installed
        expected, observed = describe_partitions(latest or frozenset()), describe_callback(event)
        if event.api == "assigned":
            yield from judge_validity(view, event)
            title, owned = "assigned is called about what is not assigned", application.owned | partitions
            if latest is not None:
                yield check(partitions <= latest, "CALLBACK-03", event, title, expected, observed)
        else:
            is_kept = view.is_cooperative and not application.is_ending and not is_reset(view)
            title, owned = "A partition is revoked that stays", application.owned - partitions
            if is_kept and latest is not None and event.api == "revoked":
                yield check(not partitions & latest, "COOP-02", event, title, f"kept: {expected}", observed)
        if application.assignments and owned == application.assignments[-1]:
            yield build_pass("CALLBACK-09", event.sequence)
            self.is_revoked, self.is_lost, self.taken = False, False, frozenset()

    def judge_assigned(self, view: ClientView, event: Event) -> Findings:
        """The listener is called about assigned partitions: all of them, or those that a cooperative member did not
        own."""
        application, partitions, owned = view.application, partitions_in(event), view.application.owned
        yield from judge_validity(view, event)
        observed = describe_partitions(partitions)
        if not application.assignments:
            title, expected = "assigned is called again", "once for each completed rebalance"
            yield check(False, "MEMBER-30" if view.is_unapplied else "CALLBACK-09", event, title, expected, observed)
            return
        latest, is_fitting = application.applied_by(partitions, view.is_cooperative)
        if view.is_cooperative:
            gone = owned - latest
            title, expected = "assigned is called before revoked", f"revoked: {describe_partitions(gone)}"
            yield check(not gone, "CALLBACK-08", event, title, expected, observed)
            title, expected = "assigned has partitions that stay", f"assigned: {describe_partitions(latest - owned)}"
            yield check(not partitions & owned, "CALLBACK-08", event, title, expected, observed)
        else:
            title, expected = "The callback does not have the whole assignment", describe_partitions(latest)
            yield check(is_fitting, "CALLBACK-03", event, title, expected, observed)
        yield build_pass("CALLBACK-09", event.sequence)
        if self.has_failed_attempt:
            yield build_pass("CALLBACK-10", event.sequence)
        self.has_failed_attempt = self.is_revoked = self.is_lost = self.revokes_again = False
        self.taken = frozenset()

    def judge_taken(self, view: ClientView, event: Event) -> Findings:
        """The listener is called about revoked or lost partitions."""
        application = view.application
        if application.is_ending:
            yield from judge_ending_callback(view, event)
        elif application.has_ended:
            return  # what it should have told before that is CALLBACK-11
        elif is_reset(view):
            yield from self.judge_lost(view, event)
        elif event.api == "revoked" and view.is_cooperative:
            yield from judge_cooperative_revocation(view, event)
        elif event.api == "revoked":
            yield from self.judge_eager_revocation(view, event)

    def judge_lost(self, view: ClientView, event: Event) -> Findings:
        """The generation is over: all partitions are lost."""
        application, partitions, observed = view.application, partitions_in(event), describe_callback(event)
        owned, is_all = describe_partitions(application.owned), partitions == application.owned
        if not partitions and (not application.owned or event.api == "revoked"):
            return  # it takes nothing
        if not application.has_lost:
            yield check(is_all, "CALLBACK-15", event, "Lost partitions are not told", f"revoked: {owned}", observed)
            return
        is_over = all(map(has_no_generation, view.knowledge.standings))
        if event.api == "revoked" and is_all and not is_over and may_have_outgrown(view):
            # It may join for another reason than the error that takes its id, which it has not read yet.
            self.early_revocation = event if view.knowledge.latest.requirement == "MEMBER-13" else None
            if self.early_revocation is not None:
                return
        given_up = [application.owned - each for each in application.assignments] if view.is_cooperative else []
        if event.api == "revoked" and partitions in given_up and not is_over:
            return  # it applies the assignment, and has not read yet that this is over
        title, is_right = "Partitions of a generation that is over", event.api == "lost" and is_all
        yield check(is_right, "CALLBACK-05", event, title, f"lost: {owned}", observed)

    def judge_eager_revocation(self, view: ClientView, event: Event) -> Findings:
        """An eager member revokes everything, once, after its commit."""
        application, partitions = view.application, partitions_in(event)
        observed = describe_partitions(partitions)
        if self.is_lost and not partitions:
            return  # another error of the same kind came late, and it takes nothing
        if self.is_revoked:
            title, expected = "revoked is called again", "once for each rebalance"
            if partitions or not self.revokes_again:
                requirement = "CALLBACK-13" if self.has_raised else "CALLBACK-10"
                yield check(False, requirement, event, title, expected, observed)
            self.revokes_again = False
            return
        had = application.owned | self.taken  # some revoke again what they have, if they apply no assignment
        had = had.union(*application.assignments) if view.is_installed_doubtful else had
        title, expected = "Not everything is revoked", describe_partitions(application.owned)
        yield check(application.owned <= partitions <= had, "CALLBACK-02", event, title, expected, observed)
        if partitions:
            yield from judge_commit_before_revocation(view, event)

    def judge_survival(self, view: ClientView, event: Event) -> Findings:
        """An error of a heartbeat that says nothing of the membership costs nothing."""
        told, latest, application = self.survived, view.knowledge.latest, view.application
        if told is None or application.is_ending or application.has_asked or not latest.is_stable:
            return
        has_grown = view.growth is not None or may_have_outgrown(view)
        if view.rebalance_told is None and not has_grown and latest.sequence < told.sequence:
            title, expected = "A heartbeat that fails costs the client its partitions", "no callback"
            yield check(False, "HBT-17", event, title, expected, event.api)

    @after("callback")
    def judge_assigned_view(self, view: ClientView, seen: Seen) -> Findings:
        """The listener was called: it sees the new assignment when partitions are assigned."""
        if (
            seen.event.api == "assigned"
            and not view.application.calls_in_parts
            and not view.is_by_hand(seen.event.time)
        ):
            yield from self.judge_seen_assignment(view, seen.event)

    def judge_seen_assignment(self, view: ClientView, event: Event) -> Findings:
        """The listener sees the assignment that the application has."""
        if "assignment" in event.body:
            told, title = partitions_in(event, "assignment"), f"The listener sees another assignment in {event.api}"
            expected, observed = describe_partitions(view.application.owned), describe_partitions(told)
            yield check(told == view.application.owned, "CALLBACK-06", event, title, expected, observed)

    # --- JoinGroup, and the end of a call.

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """A JoinGroup arrives: an eager member has given up everything, and each completed rebalance was called
        back."""
        application, operation = view.application, seen.request
        yield from self.judge_early_revocation(operation)
        if not application.is_driven or view.is_by_hand(seen.event.time) or view.is_ending or not view.protocols:
            return
        assignments = application.assignments if not view.is_installed_doubtful else []
        left = [each for each in assignments if not (application.calls_in_parts and each == application.owned)]
        if left and view.knowledge.standings[0].is_stable and not view.foreign_topics:
            title, expected = "A completed rebalance without a callback", "assigned"
            yield check_request(view, False, "CALLBACK-09", operation, title, expected, "none before JoinGroup")
        if view.is_cooperative or not application.has_been_assigned or application.has_ended:
            return
        title, expected = "JoinGroup before the partitions are given up", "a callback before JoinGroup"
        observed = f"the application still has {describe_partitions(application.owned)}"
        of_lost = "CALLBACK-05" if application.has_lost else "CALLBACK-15"
        requirements = [of_lost if is_reset(view) else "CALLBACK-02"]
        if not view.protocols.isdisjoint(COOPERATIVE_ASSIGNORS):
            requirements += ["COOP-15", "MEMBER-35"]
        for requirement in requirements:
            yield check_request(view, not application.owned, requirement, operation, title, expected, observed)
        if self.has_raised:
            self.has_raised = False
            yield build_pass("CALLBACK-13", operation.handle - 1)

    def judge_early_revocation(self, operation: Operation) -> Findings:
        """A JoinGroup without an id at once shows that the client had read the error when it revoked its partitions."""
        event, self.early_revocation = self.early_revocation, None
        if event is not None and not operation.body["member_id"] and operation.sent_at - event.time <= AT_ONCE_MS:
            title, partitions = "Partitions of a generation that is over", describe_partitions(partitions_in(event))
            yield check(False, "CALLBACK-05", event, title, f"lost: {partitions}", f"revoked: {partitions}")

    @before("result internal")
    def end_command(self, view: ClientView, seen: Seen) -> Findings:
        """A call of the application ends: one in which a listener has raised fails, and one that ends the subscription
        has told the application that its partitions are gone."""
        application, event = view.application, seen.event
        raised, self.raised = self.raised, None
        if raised is not None:
            title = f"A listener raises in {raised.api}, and the call succeeds"
            yield check("error" in event.body, "CALLBACK-12", event, title, "a failure", "success")
        is_told = application.has_been_assigned and application.manual_since is None
        if application.is_ending and event.body.get("error") != UNSUPPORTED and is_told:
            title, expected = "The application is not told that its partitions are gone", "revoked or lost"
            observed = f"it still has {describe_partitions(application.owned)}"
            yield check(not application.owned, "CALLBACK-11", event, title, expected, observed)


def describe_callback(event: Event) -> str:
    """A callback in words."""
    return f"{event.api}: {describe_partitions(partitions_in(event))}"


def judge_validity(view: ClientView, event: Event) -> Findings:
    """An assignment is not applied in a poll that began long after the news that its generation is over."""
    latest, application = view.knowledge.latest, view.application
    is_known = application.began - latest.time > 2 * view.knowledge.grace and application.is_polling
    if partitions_in(event) and has_no_generation(latest) and is_known:
        title, expected = "An assignment is applied whose generation is over", "JoinGroup"
        yield check(False, "MEMBER-30", event, title, expected, describe_callback(event))


def judge_commit_before_revocation(view: ClientView, event: Event) -> Findings:
    """An eager member with auto-commit revokes when its commit is over, or given up (CALLBACK-07). One that
    unsubscribes has none to wait for (member.md 2.5), one that closes the one that it makes then, if any (MCOMMIT-07).
    """
    application, since = view.application, view.application.committing_since
    open_ones = (each for each in view.outstanding.values() if each.connection == view.coordinator_connection)
    begun = application.command_sequence if application.is_ending else 0
    commits = [each for each in open_ones if each.api == "OffsetCommit" and each.handle > begun]
    if application.has_auto_commit and not application.does("unsubscribe"):
        is_over = since is not None and event.time - since >= view.earliest_timeout
        is_over |= any(map(has_no_generation, view.knowledge.standings))  # what is lost waits for nothing
        is_waiting = not is_over and any(event.time - each.sent_at < view.rebalance_timeout for each in commits)
        title, expected = "revoked is called during a commit", "the response to OffsetCommit first"
        yield check(not is_waiting, "CALLBACK-07", event, title, expected, "OffsetCommit has no response")


def judge_cooperative_revocation(view: ClientView, event: Event) -> Findings:
    """A cooperative member revokes partitions that it was not assigned again, or has unsubscribed from."""
    application, partitions, left = view.application, partitions_in(event), view.application.wanted
    observed = describe_partitions(partitions)
    if left is not None and all(topic not in left for topic, _ in partitions):
        yield build_pass("CALLBACK-04", event.sequence)
    elif not application.assignments:
        title, expected = "Partitions are revoked before JoinGroup", "nothing: the member is cooperative"
        yield check(not partitions, "CALLBACK-04", event, title, expected, observed)
    else:
        rightly = [application.owned - each for each in application.assignments]
        title, expected = "The wrong partitions are revoked", describe_partitions(rightly[-1])
        yield check(partitions in rightly, "COOP-02", event, title, expected, observed)


def judge_ending_callback(view: ClientView, event: Event) -> Findings:
    """Unsubscribing and closing: a stable member revokes, one whose generation is over has lost its partitions."""
    application, standings, partitions = view.application, view.knowledge.standings, partitions_in(event)
    is_stable = all(each.is_stable for each in standings)
    is_stable &= view.rebalance_told is None and view.exchange_outstanding() is None
    is_stable &= not view.is_unheard(event.time, view.knowledge.grace)
    # It may have closed its connection, and have waited for JoinGroup until then.
    is_stable &= view.coordinator_lost is None or view.coordinator_lost < application.began
    is_stable &= view.exchange is not None and view.exchange.operation is view.join  # it waits until that succeeds
    observed, owned = describe_callback(event), describe_partitions(application.owned)
    if is_stable and not view.is_cooperative and partitions:
        yield from judge_commit_before_revocation(view, event)
    title = "The callback of a client that ends is wrong"
    if is_stable and application.owned:
        is_right = event.api == "revoked" and partitions == application.owned
        yield check(is_right, "CALLBACK-11", event, title, f"revoked: {owned}", observed)
    elif application.owned and application.has_lost and is_unstable(view, event.time):
        yield check(event.api == "lost", "CALLBACK-11", event, title, f"lost: {owned}", observed)


def is_unstable(view: ClientView, time: int) -> bool:
    """Whether the generation of the client is certainly over, or it has certainly waited for JoinGroup or SyncGroup
    since the call under way began: it has not given the request up, as it would without its connection or after a
    while."""
    if all(map(has_no_generation, view.knowledge.standings)):
        return True
    waiting = view.exchange_outstanding()
    if waiting is None or waiting.handle > view.application.command_sequence or view.coordinator_lost is not None:
        return False
    return time - waiting.sent_at < MIN_PATIENCE_MS and not view.may_have_closed(waiting.connection)
