"""Interactions of single requests: perturbed ones, repeated ones, those of administrators, cut connections."""

from fencepost.conformance.classic.schedules.draw import PERTURBATIONS, draw_options, draw_perturbed
from fencepost.conformance.classic.schedules.interactions import Family, interaction
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder

APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit")
MEMBER_REQUESTS = ("join", "sync", "heartbeat", "commit", "leave")
SHARES = (5, 60, 99, 100, 100)
"""How many percent of a request are sent before its connection is cut."""


@interaction(Family.PERTURBATIONS)
def send_request(builder: ScheduleBuilder) -> None:
    """Two requests of well-behaved members."""
    for _ in range(2):
        builder.make_move(builder.draw.choose(MEMBER_REQUESTS), builder.pick_actor())


@interaction(Family.PERTURBATIONS)
def send_perturbed_requests(builder: ScheduleBuilder) -> None:
    """Two perturbed requests of any actors."""
    kinds = tuple(kind for kind in PERTURBATIONS if kind != "transact" or builder.scope.transactions)
    for _ in range(2):
        kind, options = draw_perturbed(builder.draw, kinds)
        builder.make_move(kind, builder.pick_actor(), options)


@interaction(Family.PERTURBATIONS)
def send_perturbed_request_of_member(builder: ScheduleBuilder) -> None:
    """A perturbed request of a member, followed by a Heartbeat."""
    kind, options = draw_perturbed(builder.draw, MEMBER_REQUESTS)
    who = builder.pick_member()
    builder.make_move(kind, who, options)
    builder.make_move("heartbeat", who)


@interaction(Family.PERTURBATIONS)
def repeat_request(builder: ScheduleBuilder) -> None:
    """A request is sent a second time: the last one of its API, or the one before."""
    api, depth = builder.draw.choose(APIS), builder.draw.number(0, 1)
    builder.make_move("again", builder.pick_member(), {"api": api, "depth": depth})


@interaction(Family.PERTURBATIONS)
def perturb_first_join(builder: ScheduleBuilder) -> None:
    """An empty group gets a perturbed JoinGroup."""
    for each in tuple(builder.members()):
        builder.make_move("leave", each)
    options = draw_options(builder.draw, "join")
    builder.act("join", {**{name: value for name, value in options.items() if name != "as"}, "as": "nobody"})
    builder.wait_for_joins((builder.first_actor(),))


@interaction(Family.PERTURBATIONS)
def drop_connection(builder: ScheduleBuilder) -> None:
    """A connection is cut while its request waits for the response."""
    who = builder.pick_actor()
    if builder.flag():
        builder.make_move("join", who)
    builder.make_move("drop", who, {"api": builder.draw.choose(("JoinGroup", "SyncGroup", ""))})


@interaction(Family.CUTS)
def cut_request(builder: ScheduleBuilder) -> None:
    """A connection is cut after a share of a request; the member may send it again. Part of a request must have no
    effect."""
    who, kind = builder.pick_member(), builder.draw.choose(MEMBER_REQUESTS)
    builder.make_move(kind, who, {"sent": builder.draw.choose(SHARES)})
    if builder.flag():
        builder.make_move(kind, who)
    builder.heartbeat_all()
    builder.act("fetch")
