"""What the polls of a client return, and what it fetches, held against its assignment and its positions: a monitor."""

from dataclasses import dataclass, field

from fencepost.model.classic.messages import topic_of
from fencepost.traces.classic.client.messages import describe_partitions, fetched_partitions
from fencepost.traces.classic.client.view import PARKED_MS, ClientView, blame_request, check_request
from fencepost.traces.client_judge.monitors import Findings, Seen, after, before, build_pass, check


@dataclass(slots=True)
class Records:
    """Records and fetches. `fetched_on` are the connections of the requests to Fetch."""

    fetched_on: set[int] = field(default_factory=set)

    @before("Fetch request")
    def judge_fetch(self, view: ClientView, seen: Seen) -> Findings:
        """A Fetch arrives: of partitions that are assigned, not paused, and not asked for already."""
        operation, application = seen.request, view.application
        wanted = frozenset(fetched_partitions(operation, view.topic_names))
        if application.paused and seen.event.time > application.paused_since + view.knowledge.grace:
            paused = wanted & application.paused
            title, expected = "A fetch of a partition that is paused", "no fetch of it"
            yield check_request(view, not paused, "POLL-09", operation, title, expected, describe_partitions(paused))
        if not wanted or view.join is None:
            return
        is_new = operation.connection not in self.fetched_on
        self.fetched_on.add(operation.connection)
        twice = wanted & view.fetches_outstanding()
        title, observed = "A second fetch of a partition", f"two of {describe_partitions(twice)}"
        yield check_request(view, not twice, "PREFETCH-05", operation, title, "one fetch at a time", observed)
        if any(topic in view.foreign_topics for topic, _ in wanted):
            title, expected = "Fetch of a topic that is not subscribed", "the assignment is not applied"
            yield blame_request("MEMBER-20", operation, title, expected, describe_partitions(wanted))
        elif view.knowledge.latest.requirement == "MEMBER-20":
            return  # whatever it does with an assignment that it must not apply
        elif not is_new and all(standing.is_stable for standing in view.knowledge.standings):
            # On a new connection it may have waited since before the assignment.
            allowed = view.knowledge.allowed_partitions()
            title, expected = "Fetch of a partition that is not assigned", describe_partitions(allowed)
            is_right, observed = wanted <= allowed, describe_partitions(wanted)
            yield check_request(view, is_right, "PREFETCH-08", operation, title, expected, observed)

    @before("OffsetFetch request")
    def judge_offset_fetch(self, view: ClientView, seen: Seen) -> Findings:
        """An OffsetFetch arrives."""
        groups = seen.request.body.get("groups") or (seen.request.body,)
        topics = {topic_of(topic, view.topic_names) for group in groups for topic in group.get("topics") or ()}
        if foreign := sorted(topics & view.foreign_topics):
            title, expected = "OffsetFetch of a topic that is not subscribed", "the assignment is not applied"
            yield blame_request("MEMBER-20", seen.request, title, expected, ", ".join(foreign))

    @before("poll")
    def judge_records(self, view: ClientView, seen: Seen) -> Findings:
        """A poll returns records: each of an assigned partition that is not paused, and the next of that."""
        application, positions = view.application, dict(view.application.positions)
        owned = application.owned if application.has_callbacks else view.knowledge.allowed_partitions()
        # Of an assignment that is not to be applied, MEMBER-20 speaks of whatever the client does with it.
        goes_by_assignment = application.manual_since is None and view.knowledge.latest.requirement != "MEMBER-20"
        for topic, number, offset in seen.event.body["records"]:
            partition, sequence = (str(topic), int(number)), seen.event.sequence
            record, expected = f"{topic}/{number} at {offset}", "no record of it"
            if goes_by_assignment:
                title = "A record of a partition that is not assigned"
                yield check(partition in owned, "POLL-10", sequence, title, expected, record)
            if application.paused:
                title = "A record of a partition that is paused"
                yield check(partition not in application.paused, "POLL-09", sequence, title, expected, record)
            if application.wanted is not None:
                title = "A record of a topic that is not subscribed any more"
                yield check(partition[0] in application.wanted, "POLL-18", sequence, title, expected, record)
            if (position := positions.get(partition)) is not None:
                is_sought = partition in application.sought and position == application.positions.get(partition)
                requirement = "COOP-07" if partition in application.retained else "POLL-03"
                requirement = "POLL-11" if is_sought else requirement
                requirement = "POLL-12" if (partition, position) in view.markers else requirement
                position = view.skip_markers(partition, position)
                title, expected = "Another record than the next one", f"offset {position}"
                yield check(offset == position, requirement, sequence, title, expected, record)
            elif partition in application.starts and partition not in application.out_of_range:
                start = application.starts[partition]
                title, expected = "The first record is not at the committed offset", f"offset {start}"
                yield check(offset == start, "MCOMMIT-19", sequence, title, expected, record)
            positions[partition] = offset + 1

    @before("result internal")
    def end_command(self, view: ClientView, seen: Seen) -> Findings:
        """The application is done with what it did: a poll returns not too much, and a position is behind the last
        record that was returned."""
        application, sequence = view.application, seen.event.sequence
        if application.does("poll") and application.limit and application.returned:
            title, expected = "A poll returns too much", f"at most {application.limit} records"
            is_within, observed = application.returned <= application.limit, f"{application.returned} records"
            yield check(is_within, "POLL-01", sequence, title, expected, observed)
        rows = seen.event.body.get("positions", ()) if application.does("position") else ()
        for topic, number, offset in rows if "error" not in seen.event.body else ():
            partition = str(topic), int(number)
            if (returned := application.positions.get(partition)) is not None:
                is_right = returned <= offset <= view.skip_markers(partition, returned)
                title, name = "A position is not behind the last returned record", describe_partitions({partition})
                expected, observed = f"{returned} for {name}", f"{offset} for {name}"
                yield check(is_right, "POLL-13", sequence, title, expected, observed)

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """The client joins: what is left of other topics than the ones it wants is not returned any more."""
        wanted = view.application.wanted
        if wanted is not None and view.left_records(
            each for each in view.application.positions if each[0] not in wanted
        ):
            yield build_pass("POLL-18", seen.event.sequence)

    @after("JoinGroup response")
    def judge_parked(self, view: ClientView, seen: Seen) -> Findings:
        """JoinGroup has its response: a cooperative member has returned the records that came meanwhile."""
        application, operation = view.application, seen.request
        is_parked = seen.event.time - operation.sent_at > PARKED_MS and application.is_driven
        if is_parked and view.is_cooperative and application.last_written >= operation.handle:
            waiting = view.left_records(application.owned)
            title, expected = "No record is returned while JoinGroup has no response", "records of owned partitions"
            observed = f"records are left of {describe_partitions(waiting)}"
            yield check_request(view, not waiting, "COOP-06", operation, title, expected, observed)
