"""The holes of the draft: what is missing or contradicts itself, each with the repair that the model has for it."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.hole import Hole

_HOLES = (
    Hole(
        "PUSH-H01",
        "No barrier between Stop and Start",
        "Stop has no response, so Start goes out before anybody has stopped.",
        "draft, sections 7 (4.1 to 4.3), 9-stop",
        "Stop is answered, and Start waits for all responses.",
        ("PUSH-38",),
    ),
    Hole(
        "PUSH-H02",
        "A change that meets the set bit is forgotten",
        "A trigger that arrives while the bit is set is dropped, and nothing is queued later.",
        "draft, sections 4, 6 (2.2), 7",
        "A second bit remembers it, and the group is queued again at the reset.",
        (
            "PUSH-15",
            "PUSH-29",
        ),
    ),
    Hole(
        "PUSH-H03",
        "An old map is believed",
        "Owners are persistent, so a map from before a failover or a restart passes for the running fetchers.",
        "draft, sections ZK, 7 (3.5), 8, 6 (2.1)",
        "A map is believed only if this coordinator completed it with the same registrations.",
        (
            "PUSH-36",
            "PUSH-43",
        ),
    ),
    Hole(
        "PUSH-H04",
        "A retry believes the map before it",
        "A failed attempt has moved consumers but written nothing, so the next one may believe the old map.",
        "draft, sections 7 (3, 5)",
        "The map is void once the first Stop is sent.",
        (
            "PUSH-36",
            "PUSH-41",
        ),
    ),
    Hole(
        "PUSH-H05",
        "Used-up retries leave the bit set",
        "The exception leaves the bit set and ends the handler thread of all groups of the queue.",
        "draft, section 7",
        "Every exit resets the bit, the thread goes on, and the group is queued again.",
        (
            "PUSH-20",
            "PUSH-52",
        ),
    ),
    Hole(
        "PUSH-H06",
        "One command contradicts the Start handler",
        "A single restart command meets a consumer that fetches, which the handler of Start calls an illegal state.",
        "draft, sections Overview, 9-start (3)",
        "The handler stops first, and the flag begins raised.",
        ("PUSH-48",),
    ),
    Hole(
        "PUSH-H07",
        "Requests and responses cross incarnations",
        "What is meant for a dead incarnation reaches the next one, and what a dead one answered is counted.",
        "draft, sections 5-reg, 7, 9-start (3)",
        "Requests, responses and watchers carry the number of the registration.",
        (
            "PUSH-39",
            "PUSH-40",
        ),
    ),
    Hole(
        "PUSH-H08",
        "Half-started fetchers cannot be stopped",
        "The flag is lowered after the fetchers start, so Stop does nothing where a start failed half-way.",
        "draft, sections 9-start (4 to 6), 9-stop",
        "The flag is lowered first.",
        ("PUSH-47",),
    ),
    Hole(
        "PUSH-H09",
        "A slow consumer starts after its removal",
        "A consumer that is taken for dead keeps its channel and what is in it.",
        "draft, sections 6, 7",
        "A member is removed once its lease is over, and its channel is closed.",
        ("PUSH-42",),
    ),
    Hole(
        "PUSH-H10",
        "The first to come gets everything",
        "A new coordinator rebalances at the first registration, while others still fetch for the old one.",
        "draft, sections 8, 5-newgroup (3.1), Open 3",
        "No rebalance before the longest session timeout has passed since the election.",
        ("PUSH-42",),
    ),
    Hole(
        "PUSH-H11",
        "Two coordinators",
        "A broker that has lost its session goes on as coordinator, and its pings keep its consumers.",
        "draft, sections 3, 8",
        "It stops acting before the session can end, closes its channels, and writes owners only under its election.",
        ("PUSH-02",),
    ),
    Hole(
        "PUSH-H12",
        "A new session keeps the bit",
        "The handler of a new session clears the queue, but not the bit.",
        "draft, section 8 (1)",
        "Nothing of the old session is kept.",
        ("PUSH-44",),
    ),
    Hole(
        "PUSH-H13",
        "Responses carry no attempt",
        "A response to an earlier attempt is counted for a later one.",
        "draft, sections 9-start, 7 (4.3)",
        "Responses echo the number of the attempt.",
        ("PUSH-39",),
    ),
    Hole(
        "PUSH-H14",
        "Responses look the same",
        "A ping response without partitions has the bytes of a successful start response.",
        "draft, sections 9-ping, 9-start",
        "Responses carry a type.",
        ("PUSH-51",),
    ),
    Hole(
        "PUSH-H15",
        "Offsets are stale, ambiguous and unowned",
        "The current offset may be the fetched one, and a consumer that was stopped reports as well.",
        "draft, sections 9-ping, 9-stop, 9-start",
        "Offsets are the consumed ones, come with the stop response, and count from the owner alone.",
        ("PUSH-46",),
    ),
    Hole(
        "PUSH-H16",
        "Ping scheduling and the lease",
        "The comparison is inverted, a held channel gets no ping, and unconfirmed pings renew the lease.",
        "draft, sections 3-sched, Overview, 9",
        "Pings go out when due, waits are shorter than the lease, and only confirmed pings renew it.",
        (
            "PUSH-08",
            "PUSH-32",
        ),
    ),
    Hole(
        "PUSH-H17",
        "Startup accepts before it listens",
        "Registrations are accepted before the expiry listener and the handlers exist.",
        "draft, section 3",
        "Both are there before the election.",
        ("PUSH-06",),
    ),
    Hole(
        "PUSH-H18",
        "Check, then set",
        "The listeners of topics test the bit and set it in two steps.",
        "draft, sections 4 (2.3), 6 (2.2)",
        "Every user compares and sets.",
        ("PUSH-16",),
    ),
    Hole(
        "PUSH-H19",
        "Is a registration answered",
        "One sentence says that a registration needs no response, the steps wait for one.",
        "draft, sections 5 (4), 5-reg",
        "It is always answered.",
        ("PUSH-25",),
    ),
    Hole(
        "PUSH-H20",
        "Small contradictions",
        "The coordinator's id has 16 bits, other ids 32; no id stands for none; a group is a string modulo a number.",
        "draft, sections 5-meta, 6 (2.2)",
        "The id has 32 bits, -1 means none, and the hash is unsigned.",
        (
            "PUSH-17",
            "PUSH-23",
        ),
    ),
)
PUSH_HOLES: Mapping[str, Hole] = MappingProxyType({each.id: each for each in _HOLES})
"""Every hole by its id."""
