"""The rules by which coordinator and consumers act: one row for each branch of the handlers."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.specification import Rule, Specification
from fencepost.model.push.group import DUPLICATE, ILLEGAL_STATE, TIMEOUT_TOO_SMALL
from fencepost.model.push.requirements import PUSH_CATALOGUE


def row(name: str, api: str, error: int | None, guard: str, requirements: str) -> Rule:
    """A row of the table; requirements are given by their numbers."""
    return Rule(name, api, error, guard, tuple(f"PUSH-{number}" for number in requirements.split()))


_ELECTION = (
    row("elector.elected", "", None, "the path is vacant and the broker has a session", "01 03"),
    row("elector.path-gone", "", None, "the broker that holds the path is dead", "03"),
    row("startup.armed", "", None, "the socket server is up", "04 06"),
    row("startup.ready", "", None, "the listener is registered", "04"),
    row("session.expired", "", None, "ZooKeeper has ended the session, and the broker does not know", "02"),
    row("session.stepped-down", "", None, "the session is about to end", "02"),
    row("session.noticed", "", None, "a new session has begun", "06 44"),
)
_MEMBERSHIP = (
    row("register.accepted", "RegisterConsumer", 0, "the id is new in its group and the timeout is allowed", "25 29"),
    row("register.no-topics", "RegisterConsumer", 0, "the group is new, and none of its topics exists", "30"),
    row("register.duplicate", "RegisterConsumer", DUPLICATE, "a member has the id", "26"),
    row(
        "register.timeout-too-small",
        "RegisterConsumer",
        TIMEOUT_TOO_SMALL,
        "the session timeout is not above the minimum",
        "27",
    ),
    row("remove.last", "", None, "no member is left", "33"),
    row("trigger.new-group", "", None, "the group is new and one of its topics exists", "29 30"),
    row("trigger.queued", "", None, "the bit was clear", "16 18"),
    row("trigger.remembered", "", None, "the bit is set", "15"),
    row("trigger.forgotten", "", None, "the bit is set, as drafted", "15"),
    row("listener.read-clear", "", None, "a listener has read the bit as clear, as drafted", "16"),
    row("listener.set", "", None, "a listener sets the bit that it has read as clear, as drafted", "16"),
    row("listener.nobody", "", None, "no group with members wants the topic", "14"),
)
_REBALANCE = (
    row("rebalance.taken", "", None, "the thread is alive and idle, and a request is queued", "17 18"),
    row("rebalance.computed", "", None, "the request was taken, or the attempt before has failed", "34"),
    row("rebalance.necessary", "", None, "the recorded owners differ, or may not be believed", "36"),
    row("rebalance.unnecessary", "", None, "the recorded owners are those computed, and are believed", "36"),
    row("rebalance.stopping", "Stop", None, "a rebalance is necessary", "37"),
    row("rebalance.starting", "Start", None, "every member has stopped; as drafted, right after Stop", "35 37 38"),
    row("response.counted", "", None, "others are awaited", "39"),
    row("rebalance.all-stopped", "", None, "the last response to Stop has come", "38"),
    row("rebalance.all-started", "", None, "the last response to Start has come", "39"),
    row("response.ping", "", None, "the response is to a ping", "10"),
    row("response.not-awaited", "", None, "the response belongs to no awaited request", "39"),
    row("rebalance.retried", "", None, "the attempt has failed, and retries are left", "21 41"),
    row("rebalance.released", "", None, "the attempt has failed, and the retries are used up", "20"),
    row("rebalance.failed", "", None, "the retries are used up, as drafted", "20"),
    row("rebalance.recorded", "", None, "every member has started", "40"),
    row("rebalance.finished", "", None, "the rebalance has succeeded and nothing was remembered", "19"),
    row("rebalance.again", "", None, "the rebalance has succeeded and a change was remembered", "15 19"),
)
_CONSUMER = (
    row("scheduler.ping", "Ping", None, "the ping is due and the channel is free", "07 08 09"),
    row("consumer.registered", "", None, "the registration was accepted", "25"),
    row("consumer.refused", "", None, "the registration was refused", "28"),
    row("consumer.gave-up", "", None, "no request came for the configured time", "32"),
    row("ping.answered", "Ping", None, "always", "31 45"),
    row("stop.closed", "Stop", None, "the flag is lowered", "47"),
    row("stop.stopped-before", "Stop", None, "the flag is raised", "47"),
    row("start.started", "Start", 0, "the consumer has stopped, or gets what it has", "49"),
    row("start.illegal", "Start", ILLEGAL_STATE, "the consumer fetches something else", "48"),
    row("start.failed", "Start", None, "a fetcher did not start", "47 49"),
)
PUSH_RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.name: rule for table in (_ELECTION, _MEMBERSHIP, _REBALANCE, _CONSUMER) for rule in table}
)
"""Every rule by name."""
PUSH = Specification(
    PUSH_CATALOGUE,
    PUSH_RULES,
    subject="push coordinator",
    badge="kafka push coordinator",
    shelf="push",
    pushed=frozenset({"Ping", "Stop", "Start"}),
)
"""Requirements and rules."""
