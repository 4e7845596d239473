"""The specification of the push coordinator: requirements, rules, and the holes of the draft, as text.

All are read from draft revision 19. `fencepost.model.catalogue.notation` explains the notation.
"""

from fencepost.model.catalogue.notation import read_holes, read_requirements, read_rules
from fencepost.model.catalogue.specification import Specification
from fencepost.model.push.group import DUPLICATE, ILLEGAL_STATE, TIMEOUT_TOO_SMALL

_REQUIREMENTS = """
# Election, startup, pings, topics, queues, the rebalance bit
PUSH-01 MUST: One holder of the path
  At most one broker holds the coordinator path at any time. [draft, sections ZK, 3]
  untestable: only ZooKeeper shows who holds the path
PUSH-02 MUST: A coordinator holds the path; in passing
  A broker acts as coordinator only while it holds the path in its current session. [draft, sections 3, 8]
PUSH-03 MUST: One successor; in passing
  When the path disappears every live broker tries again and exactly one wins. [draft, section 3]
PUSH-04 MUST: Startup once per election
  The startup procedure runs once per election, before the first registration is answered. [draft, section 3]
  untestable: what a broker does before its first response shows to nobody
PUSH-05 MUST: Startup subscribes
  Startup subscribes to the topic list and to every existing topic's partitions. [draft, sections 3 (2.1, 2.2)]
PUSH-06 MUST: The listener is armed; in passing
  The session-expiry listener is armed for every session in which the broker may act. [draft, sections 3 (5), 8 (2)]
PUSH-07 MUST: Pings by thirds
  A ping is due every third of the consumer's own session timeout. [draft, section 3-sched]
PUSH-08 MUST: No ping early, none skipped
  No ping is sent before it is due and none is skipped when due on a free channel. [draft, section 3-sched]
PUSH-09 MUST: No ping on a held channel
  No ping is written on a channel held for a rebalance. [draft, sections 3-sched 2.1, 2.2]
PUSH-10 MUST: One watcher for each request
  Every ping and every restart request arms exactly one expiry watcher, and its response clears only that.
  [draft, section 3]
  untestable: expiry watchers are in the coordinator's memory
PUSH-11 MUST: Silent consumers are removed
  A consumer that misses the configured number of responses is removed. [draft, sections Config, 6]
PUSH-12 MUST: Retries are numbered
  A ping retry carries the number of retries before it. [draft, section 9-ping]
PUSH-13 MUST: New topics
  A new topic leads to a rebalance of every group that names it or whose wildcard matches it. [draft, section 4]
PUSH-14 MUST: New partitions
  A partition change leads to a rebalance of every interested group and of no other. [draft, section 4]
PUSH-15 MUST: No change is lost; in passing
  A change that arrives while the group is being rebalanced is not lost. [draft, sections 4, 6]
PUSH-16 MUST: Compare and set
  All users of the rebalance bit change it by compare-and-set. [draft, sections 6, 4]
  untestable: the bit is in the coordinator's memory
PUSH-17 MUST: One queue for a group
  Requests of one group always go to the same queue and are handled in order. [draft, sections 3 (6,7), 4, 7]
PUSH-18 MUST: One rebalance of a group; in passing
  At most one rebalance per group is in flight. [draft, sections 3 (2), 7]
PUSH-19 MUST: The bit is reset on success; in passing
  The rebalance bit is reset when the rebalance succeeds. [draft, section 7]
PUSH-20 MUST: The bit is reset on failure
  The bit is reset and the thread survives when the retries are used up. [draft, section 7]
PUSH-21 MUST: Bounded retries
  A failed rebalance is retried at most the configured number of times, with the configured back-off.
  [draft, sections Config, 7]

# Lookup, registration and removal of consumers
PUSH-22 MUST: Bootstrap round robin
  The consumer tries the bootstrap brokers round robin, without end, until shut down. [draft, section 5 (1-1.3)]
  untestable: the kit plays the consumers
PUSH-23 MUST: Metadata names the coordinator
  The metadata answer names the live brokers and the elected coordinator, or an error when there is none.
  [draft, section 5-meta]
PUSH-24 MUST: Any broker tells
  Any broker answers a metadata request. [draft, section 5-meta]
PUSH-25 MUST: One registration per channel
  Exactly one register request is sent per channel and it is answered. [draft, sections 5 (4), 5-reg]
PUSH-26 MUST: Ids are unique in a group
  A registration with an id already live in the group is refused and its channel closed. [draft, section 5-reg]
PUSH-27 MUST: Session timeout above the minimum
  A registration whose session timeout is not above the minimum is refused. [draft, section 5-reg]
PUSH-28 MUST: A refused consumer starts over
  A refused consumer starts over from the lookup. [draft, section 5 (5)]
  untestable: the kit plays the consumers
PUSH-29 MUST: A registration rebalances
  Every accepted registration triggers a rebalance of its group. [draft, section 5-reg]
PUSH-30 MUST: Interest of a new group
  A new group is entered for each of its topics, existing or not, and in the wildcard list if it has a pattern.
  [draft, section 5-newgroup]
PUSH-31 MUST: Consumers only respond
  After registering, the consumer never sends a request, only responses. [draft, sections Overview, 5]
  untestable: the kit plays the consumers
PUSH-32 MUST: A silent coordinator is left
  A consumer without any request for its configured time stops its fetchers before it looks for a coordinator.
  [draft, section Overview]
  untestable: the kit plays the consumers
PUSH-33 MUST: The last member
  Removing the last member does not start a rebalance. [draft, section 6 (2.1)]

# Assignment, Stop and Start, owners, failover
PUSH-34 MUST: The assignment is a partition; in passing
  The assignment covers all partitions of all interested topics and is disjoint. [draft, sections 7 (1), Overview]
PUSH-35 MUST: Each its own part
  Each Start contains only the partitions of its addressee. [draft, sections Overview, 9-start]
PUSH-36 MUST: Skipping needs a true map; in passing
  A rebalance is skipped only if every member really runs the recorded assignment. [draft, section 7 (3)]
PUSH-37 MUST: Stop before Start
  Within one attempt each member gets Stop before Start on the same channel. [draft, sections 7 (4.1, 4.2)]
PUSH-38 MUST: All stop before one starts
  No member starts before all members of the attempt have stopped. [draft, sections 9-start, 9-stop]
PUSH-39 MUST: All responses of the attempt
  The attempt completes only with the responses of all its members to its own Start. [draft, section 7 (4.3)]
PUSH-40 MUST: Owners are recorded last
  Ownership is written only after all responses and equals the started fetchers. [draft, section 7 (5)]
  untestable: only ZooKeeper shows the recorded owners
PUSH-41 MUST: A timed-out attempt
  A timed-out attempt leaves ownership unwritten and the next attempt sends Stop to every member again.
  [draft, section 7 (5)]
PUSH-42 MUST: Nothing given away after a failover; in passing
  After a failover no partition is given away while a consumer of the old coordinator may still fetch it.
  [draft, sections 8, Open 3]
PUSH-43 MUST: Groups recover after a failover; in passing
  After a failover every group whose members return is fetched again. [draft, section 8]
PUSH-44 MUST: A new session forgets; in passing
  A new session discards all in-memory state of the old one, including the bits, running handlers and channels.
  [draft, section 8 (1)]

# Offsets, the handlers of a consumer, the bytes of messages
PUSH-45 MUST: Offsets in a ping response
  A ping response contains one offset per consumed partition with auto-commit, and no fields without.
  [draft, section 9-ping]
  untestable: the kit plays the consumers
PUSH-46 MUST: Offsets of the next owner; in passing
  The next owner begins neither beyond what the application consumed nor before the last recorded offset.
  [draft, sections 9-ping, 9-start]
PUSH-47 MUST: Stop closes every fetcher
  Stop closes every running fetcher and empties its queues whatever the flag says. [draft, section 9-stop]
  untestable: the kit plays the consumers
PUSH-48 MUST: Start needs a Stop
  A Start for a consumer that has not been stopped is refused with an error, and no legal schedule has one.
  [draft, section 9-start (3)]
  untestable: the kit plays the consumers
PUSH-49 MUST: Registry, fetchers and flag agree
  After a successful Start registry, running fetchers and flag agree. [draft, section 9-start (4-6)]
  untestable: the kit plays the consumers
PUSH-50 MUST: Messages round-trip
  Every message round-trips through the encoder with the sizes of section 2; size excludes itself.
  [draft, sections 5, 9 formats]
PUSH-51 MUST: Responses can be told apart
  A response can be told apart from every other response on the same channel. [draft, section 9]
PUSH-52 MUST: A slow group delays boundedly; in passing
  One slow group delays another group of the same queue at most (retries+1) times the wait plus back-off.
  [draft, sections 7, Open 2]
"""

_RULES = """
no api: election, startup and the session of a broker
  elector.elected: the path is vacant and the broker has a session [PUSH-01 PUSH-03]
  elector.path-gone: the broker that holds the path is dead [PUSH-03]
  startup.armed: the socket server is up [PUSH-04 PUSH-06]
  startup.ready: the listener is registered [PUSH-04]
  session.expired: ZooKeeper has ended the session, and the broker does not know [PUSH-02]
  session.stepped-down: the session is about to end [PUSH-02]
  session.noticed: a new session has begun [PUSH-06 PUSH-44]

api RegisterConsumer
  register.accepted NONE: the id is new in its group and the timeout is allowed [PUSH-25 PUSH-29]
  register.no-topics NONE: the group is new, and none of its topics exists [PUSH-30]
  register.duplicate DUPLICATE: a member has the id [PUSH-26]
  register.timeout-too-small TIMEOUT_TOO_SMALL: the session timeout is not above the minimum [PUSH-27]
no api: membership, the rebalance bit and listeners
  remove.last: no member is left [PUSH-33]
  trigger.new-group: the group is new and one of its topics exists [PUSH-29 PUSH-30]
  trigger.queued: the bit was clear [PUSH-16 PUSH-18]
  trigger.remembered: the bit is set [PUSH-15]
  trigger.forgotten: the bit is set, as drafted [PUSH-15]
  listener.read-clear: a listener has read the bit as clear, as drafted [PUSH-16]
  listener.set: a listener sets the bit that it has read as clear, as drafted [PUSH-16]
  listener.nobody: no group with members wants the topic [PUSH-14]

no api: rebalances
  rebalance.taken: the thread is alive and idle, and a request is queued [PUSH-17 PUSH-18]
  rebalance.computed: the request was taken, or the attempt before has failed [PUSH-34]
  rebalance.necessary: the recorded owners differ, or may not be believed [PUSH-36]
  rebalance.unnecessary: the recorded owners are those computed, and are believed [PUSH-36]
api Stop
  rebalance.stopping: a rebalance is necessary [PUSH-37]
api Start
  rebalance.starting: every member has stopped; as drafted, right after Stop [PUSH-35 PUSH-37 PUSH-38]
no api: rebalances
  response.counted: others are awaited [PUSH-39]
  rebalance.all-stopped: the last response to Stop has come [PUSH-38]
  rebalance.all-started: the last response to Start has come [PUSH-39]
  response.ping: the response is to a ping [PUSH-10]
  response.not-awaited: the response belongs to no awaited request [PUSH-39]
  rebalance.retried: the attempt has failed, and retries are left [PUSH-21 PUSH-41]
  rebalance.released: the attempt has failed, and the retries are used up [PUSH-20]
  rebalance.failed: the retries are used up, as drafted [PUSH-20]
  rebalance.recorded: every member has started [PUSH-40]
  rebalance.finished: the rebalance has succeeded and nothing was remembered [PUSH-19]
  rebalance.again: the rebalance has succeeded and a change was remembered [PUSH-15 PUSH-19]

api Ping
  scheduler.ping: the ping is due and the channel is free [PUSH-07 PUSH-08 PUSH-09]
no api: consumers
  consumer.registered: the registration was accepted [PUSH-25]
  consumer.refused: the registration was refused [PUSH-28]
  consumer.gave-up: no request came for the configured time [PUSH-32]
api Ping
  ping.answered: always [PUSH-31 PUSH-45]
api Stop
  stop.closed: the flag is lowered [PUSH-47]
  stop.stopped-before: the flag is raised [PUSH-47]
api Start
  start.started NONE: the consumer has stopped, or gets what it has [PUSH-49]
  start.illegal ILLEGAL_STATE: the consumer fetches something else [PUSH-48]
  start.failed: a fetcher did not start [PUSH-47 PUSH-49]
"""

_HOLES = """
PUSH-H01: No barrier between Stop and Start
  Stop has no response, so Start goes out before anybody has stopped. [draft, sections 7 (4.1 to 4.3), 9-stop]
  Stop is answered, and Start waits for all responses. [PUSH-38]
PUSH-H02: A change that meets the set bit is forgotten
  A trigger that arrives while the bit is set is dropped, and nothing is queued later. [draft, sections 4, 6 (2.2), 7]
  A second bit remembers it, and the group is queued again at the reset. [PUSH-15, PUSH-29]
PUSH-H03: An old map is believed
  Owners are persistent, so a map from before a failover or a restart passes for the running fetchers.
  [draft, sections ZK, 7 (3.5), 8, 6 (2.1)]
  A map is believed only if this coordinator completed it with the same registrations. [PUSH-36, PUSH-43]
PUSH-H04: A retry believes the map before it
  A failed attempt has moved consumers but written nothing, so the next one may believe the old map.
  [draft, sections 7 (3, 5)]
  The map is void once the first Stop is sent. [PUSH-36, PUSH-41]
PUSH-H05: Used-up retries leave the bit set
  The exception leaves the bit set and ends the handler thread of all groups of the queue. [draft, section 7]
  Every exit resets the bit, the thread goes on, and the group is queued again. [PUSH-20, PUSH-52]
PUSH-H06: One command contradicts the Start handler
  A single restart command meets a consumer that fetches, which the handler of Start calls an illegal state.
  [draft, sections Overview, 9-start (3)]
  The handler stops first, and the flag begins raised. [PUSH-48]
PUSH-H07: Requests and responses cross incarnations
  What is meant for a dead incarnation reaches the next one, and what a dead one answered is counted.
  [draft, sections 5-reg, 7, 9-start (3)]
  Requests, responses and watchers carry the number of the registration. [PUSH-39, PUSH-40]
PUSH-H08: Half-started fetchers cannot be stopped
  The flag is lowered after the fetchers start, so Stop does nothing where a start failed half-way.
  [draft, sections 9-start (4 to 6), 9-stop]
  The flag is lowered first. [PUSH-47]
PUSH-H09: A slow consumer starts after its removal
  A consumer that is taken for dead keeps its channel and what is in it. [draft, sections 6, 7]
  A member is removed once its lease is over, and its channel is closed. [PUSH-42]
PUSH-H10: The first to come gets everything
  A new coordinator rebalances at the first registration, while others still fetch for the old one.
  [draft, sections 8, 5-newgroup (3.1), Open 3]
  No rebalance before the longest session timeout has passed since the election. [PUSH-42]
PUSH-H11: Two coordinators
  A broker that has lost its session goes on as coordinator, and its pings keep its consumers. [draft, sections 3, 8]
  It stops acting before the session can end, closes its channels, and writes owners only under its election. [PUSH-02]
PUSH-H12: A new session keeps the bit
  The handler of a new session clears the queue, but not the bit. [draft, section 8 (1)]
  Nothing of the old session is kept. [PUSH-44]
PUSH-H13: Responses carry no attempt
  A response to an earlier attempt is counted for a later one. [draft, sections 9-start, 7 (4.3)]
  Responses echo the number of the attempt. [PUSH-39]
PUSH-H14: Responses look the same
  A ping response without partitions has the bytes of a successful start response. [draft, sections 9-ping, 9-start]
  Responses carry a type. [PUSH-51]
PUSH-H15: Offsets are stale, ambiguous and unowned
  The current offset may be the fetched one, and a consumer that was stopped reports as well.
  [draft, sections 9-ping, 9-stop, 9-start]
  Offsets are the consumed ones, come with the stop response, and count from the owner alone. [PUSH-46]
PUSH-H16: Ping scheduling and the lease
  The comparison is inverted, a held channel gets no ping, and unconfirmed pings renew the lease.
  [draft, sections 3-sched, Overview, 9]
  Pings go out when due, waits are shorter than the lease, and only confirmed pings renew it. [PUSH-08, PUSH-32]
PUSH-H17: Startup accepts before it listens
  Registrations are accepted before the expiry listener and the handlers exist. [draft, section 3]
  Both are there before the election. [PUSH-06]
PUSH-H18: Check, then set
  The listeners of topics test the bit and set it in two steps. [draft, sections 4 (2.3), 6 (2.2)]
  Every user compares and sets. [PUSH-16]
PUSH-H19: Is a registration answered
  One sentence says that a registration needs no response, the steps wait for one. [draft, sections 5 (4), 5-reg]
  It is always answered. [PUSH-25]
PUSH-H20: Small contradictions
  The coordinator's id has 16 bits, other ids 32; no id stands for none; a group is a string modulo a number.
  [draft, sections 5-meta, 6 (2.2)]
  The id has 32 bits, -1 means none, and the hash is unsigned. [PUSH-17, PUSH-23]
"""

PUSH_CATALOGUE, _ = read_requirements(_REQUIREMENTS)
"""Every requirement by its id."""
PUSH_RULES = read_rules(
    _RULES,
    requirements=PUSH_CATALOGUE,
    errors={
        "NONE": 0,
        "DUPLICATE": DUPLICATE,
        "ILLEGAL_STATE": ILLEGAL_STATE,
        "TIMEOUT_TOO_SMALL": TIMEOUT_TOO_SMALL,
    },
)
"""Every rule by its name, one for each branch of the handlers of coordinator and consumers."""
PUSH_HOLES = read_holes(_HOLES, requirements=PUSH_CATALOGUE)
"""Every hole by its id: what the draft lacks, or where it contradicts itself, with the repair that the model has."""
PUSH = Specification(
    PUSH_CATALOGUE,
    PUSH_RULES,
    subject="push coordinator",
    badge="kafka push coordinator",
    shelf="push",
    pushed=frozenset({"Ping", "Stop", "Start"}),
)
"""Requirements and rules."""
