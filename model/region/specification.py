"""The specification of a consumer group in a consistent region: requirements, rules, holes of the page, as text.

All are read from the design page. `fencepost.model.catalogue.notation` explains the notation.
"""

from fencepost.model.catalogue.notation import read_holes, read_requirements, read_rules
from fencepost.model.catalogue.specification import Specification

_REQUIREMENTS = """
# The group, its bean, the threads of an operator
REGION-01 MUST: One region for a group
  All operators of a group have the same region index, and initialisation fails at one that has another.
  [page, sections Assume, Init]
REGION-02 MUST: One bean for a group
  Operators that create the bean of their group at the same time end up with one bean. [page, section Init]
REGION-03 MUST: Registration at every connection
  An operator registers its name whenever it connects to the job control plane, after a restart of that too.
  [page, section Shared]
REGION-04 MUST: Subscribed without partitions
  An operator that has subscribed is SUBSCRIBED and holds no partition. [page, section Init]
REGION-05 MUST: No control port
  A control input port is refused in a consistent region. [page, section Assume]
REGION-06 MUST: Start positions
  A start position is the beginning, the end, the committed offset or a time, and never a specific offset.
  [page, section Assume]
REGION-07 MUST: Capacity of the queue
  The queue holds 100 times max.poll.records messages, 50,000 by default. [page, section Threads]
REGION-08 MUST: A full queue stops fetching; in passing
  Fetching never makes the queue overflow. [page, section Threads]
REGION-09 MUST: One thread has the client
  Only the event thread calls the Kafka client. [page, section Threads]
  untestable: the kit takes an operator from step to step, and does not see its threads
REGION-10 MUST: Tuples need a permit; in passing
  A tuple is submitted only with a permit of the region. [page, section Threads]
REGION-11 MUST: The offset after a submission; in passing
  After a submission the offset manager holds the offset that follows in that partition. [page, section Threads]

# Revocation and assignment
REGION-12 MUST: Revocations that need no reset
  A revocation at an operator that is SUBSCRIBED or RESET_COMPLETE requests no reset.
  [page, sections Revoke, After-reset]
REGION-13 MUST: Revocation after a fetch
  A revocation in RECORDS_FETCHED clears the queue, stops polling, forces a reset and waits for it.
  [page, section Revoke]
REGION-14 MUST: Nothing is queued before a reset; in passing
  An operator in CR_RESET_PENDING enqueues no record that it fetches. [page, section Revoke]
REGION-15 MUST: Requests are not forgotten
  A reset that an operator requests is performed at that operator, whatever the region is doing. [page, section Revoke]
REGION-16 MUST: Reset before or after the assignment
  A reset that comes before the assignment leads to the same positions as one that comes after it.
  [page, section Revoke]
REGION-17 MUST: Offsets follow the assignment
  An assignment removes the offsets of partitions that are gone and adds the new partitions. [page, section Assign]
REGION-18 MUST: Order of start offsets
  A partition is sought to the merged checkpoint, else its control variable, else the start position.
  [page, section Assign]
REGION-19 MUST: No seek before a reset; in passing
  An assignment at an operator in CR_RESET_PENDING seeks nothing. [page, section Assign]
REGION-20 MUST: Initial offsets stay; in passing
  The initial offset of a partition is stored once and never changes. [page, sections Shared, Assign]
REGION-21 MUST: The stored initial offset counts
  An operator that finds a control variable made by another one fetches from the offset in it. [page, section Shared]
REGION-22 MUST: Metrics of an assignment
  The metrics show the number of assigned partitions and that of their topics. [page, section Assign]

# Drain, checkpoint, merge
REGION-23 MUST: Polling stops before the commit
  A drain stops polling before it commits. [page, section Drain]
REGION-24 MUST: A drain leaves nothing in hand
  A drain puts the queue into the buffer and returns with no message in hand. [page, section Drain]
REGION-25 MUST: One commit for all partitions
  A drain commits the offsets of all partitions in one request that it waits for. [page, section Drain]
REGION-26 MUST: A failed commit restarts the operator
  A commit that fails for any partition restarts the operator and resets the region. [page, section Drain]
REGION-27 MUST: Times of drains
  The metrics show the time of the last drain and the longest one in milliseconds. [page, section Drain]
REGION-28 MUST: What a checkpoint contains
  A checkpoint contains the operator's name, the names of all members and the offsets of its partitions.
  [page, section Ckpt-data]
REGION-29 MUST: One set of names in a merge; in passing
  All contributions to one merge name the same members. [page, sections Ckpt-data, Reset-ckpt]
REGION-30 MUST: Checkpoints that are refused; in passing
  No checkpoint is completed while an operator waits for a reset or lacks an offset. [page, sections Drain, Revoke]
REGION-31 MUST: A checkpoint covers what was read; in passing
  A complete checkpoint covers every partition that the group has ever read. [page, sections Ckpt-data, Reset-ckpt]
REGION-32 MUST: Contributions are disjoint; in passing
  No two operators contribute the same partition to one merge. [page, section Reset-ckpt]
REGION-33 MUST: N contributions of N names
  A merge completes once operators of N different names have contributed for its sequence id, and not before.
  [page, section Reset-ckpt]
REGION-34 MUST: The union of the contributions
  The merged map is the union of the contributions in whatever order they come. [page, section Reset-ckpt]

# Resets, and what they are for
REGION-35 MUST: One map for all; in passing
  All operators resume from the same merged map. [page, section Reset-ckpt]
REGION-36 MUST: Notifications of other checkpoints
  An operator acts only on the notification of the checkpoint that it is being reset to. [page, section Reset-ckpt]
REGION-37 MUST: The same checkpoint again
  A second reset to a checkpoint works for operators that were relaunched and for those that were not.
  [page, section Reset-ckpt]
REGION-38 MUST: Time to wait for a merge
  An operator waits half the reset timeout, half of max.poll.interval.ms or 15 seconds, whichever is least.
  [page, section Reset-ckpt]
  untestable: the repaired design waits as long as the region's reset may last (REGION-H16)
REGION-39 MUST: A wait that ends
  A merge that comes too late fails the operator's reset, and another attempt follows up to their maximum.
  [page, section Reset-ckpt]
REGION-40 MUST: Retiring a checkpoint
  Retiring a checkpoint removes its merges and notifications and nothing of a later one. [page, section Reset-ckpt]
REGION-41 MUST: Clear before seeking
  A reset stops polling and empties buffer and queue before it seeks. [page, sections Reset-init, Reset-ckpt]
REGION-42 MUST: Nothing from before a reset; in passing
  No message that was taken before a reset is submitted after it. [page, sections Reset-init, Reset-ckpt]
REGION-43 MUST: Reset to the initial state
  A reset to the initial state seeks every assigned partition to its control variable. [page, section Reset-init]
REGION-44 MUST: State after a reset
  After a reset the offset manager has the positions, the state is RESET_COMPLETE and polling throttled.
  [page, sections Reset-init, Reset-ckpt]
REGION-45 MUST: Assignment after a reset
  An assignment after a reset seeks the merged map, for partitions that the operator never had too.
  [page, section After-reset]
REGION-46 MUST: Partitions that are added
  Whoever gets a partition that was added reads it from its control variable, before and after resets.
  [page, sections Intro, Assign]
REGION-47 MUST: Nothing is lost; in passing
  Every record is in the state of a complete checkpoint in the end. [page, section Intro]
REGION-48 MUST: Nothing comes twice; in passing
  No record is twice in the state of a complete checkpoint. [page, section Intro]
REGION-49 MUST: The control plane restarts
  A restart of the job control plane during a merge only delays the reset. [page, section Shared]
REGION-50 MUST: Resets for a rebalance; in passing
  A rebalance causes no more resets of the region than the group has operators. [page, section Revoke]
REGION-51 MUST: Cooperative assignment
  Cooperative assignors are refused, or their callbacks lead to a reset. [page, section Revoke]
REGION-52 MUST: Offsets that are gone
  A reset to an offset that the log no longer has is reported, and nothing is skipped. [page, section Reset-ckpt]
"""

_RULES = """
no api: the group and its callbacks
  client.joined: the client holds nothing, and joins [REGION-04]
  revoke.ignored: nothing was fetched since subscription or reset [REGION-12]
  revoke.pending: a reset is waited for [REGION-14]
  revoke.requests-reset: records were fetched; repaired, also an assignment by a map that is old
    [REGION-13 REGION-15 REGION-50; seeks REGION-45, offsets REGION-17]
  revoke.cooperative: the assignor is cooperative, as documented [REGION-51]
  assign.sought: the operator is SUBSCRIBED or RESET_COMPLETE [REGION-17 REGION-18 REGION-20 REGION-21 REGION-22
    REGION-45 REGION-46; seeks REGION-18, asks REGION-12, partitions REGION-22, topics REGION-22]
  assign.pending: a reset is waited for [REGION-16 REGION-19; offsets REGION-17, seeks REGION-19]
  assign.no-rule: records were fetched and nothing was revoked, as documented [REGION-51]
  assign.added: a cooperative assignor names new partitions alone, as documented [REGION-17 REGION-51]
  assign.kept: a cooperative assignor names no new partition, as documented [REGION-51]
  operator.relaunched: the PE was down [REGION-04]
  operator.missed: the session of a dead process's member ends [none]
  operator.expelled: Kafka ends the membership of a live operator [REGION-32]

no api: the threads of an operator
  poll.queued: the queue has room, and no reset is waited for
    [REGION-07 REGION-08 REGION-09; pauses REGION-07, queue REGION-08]
  poll.dropped: a reset is waited for [REGION-14]
  process.taken: the queue is not empty; repaired, with a permit [REGION-10]
  process.submitted: the operator has a permit
    [REGION-10 REGION-11 REGION-47 REGION-48; offsets REGION-11, tuple REGION-10]
  process.dropped: the partition is assigned no longer, or a reset is waited for [REGION-42; offsets REGION-17]

no api: drain and checkpoint
  region.drains: the region runs, and every operator has resumed [REGION-23]
  drain.drained: nothing is in hand, and the commit succeeds
    [REGION-23 REGION-24 REGION-25 REGION-27; buffer REGION-24, commit REGION-25, drains REGION-27, queue REGION-24]
  drain.commit-failed: the commit fails [REGION-26]
  drain.commit-logged: the commit fails, as releases of the toolkit have it [REGION-26]
  checkpoint.written: others have yet to write [REGION-28; names REGION-29]
  checkpoint.refused: the operator waits for a reset, lacks an offset or is a member no longer [REGION-30 REGION-32]
  checkpoint.complete: every other operator has written [REGION-29 REGION-31 REGION-47 REGION-48]
  checkpoint.resumed: the checkpoint is complete [REGION-24 REGION-40; queue REGION-24]

no api: resets
  region.resets: a reset was requested, or a PE has failed [REGION-15 REGION-39 REGION-50]
  reset.initial: there is no complete checkpoint [REGION-41 REGION-43 REGION-44; buffer REGION-41, offsets REGION-44,
    polling REGION-44, queue REGION-41, seeks REGION-43, state REGION-44]
  reset.merged: the notification of the checkpoint has come [REGION-35 REGION-36 REGION-41 REGION-44; buffer REGION-41,
    done REGION-33, offsets REGION-44, polling REGION-44, queue REGION-41, seeks REGION-35, state REGION-44]
  bean.created: the job control plane has started [REGION-02]
  bean.registered: the operator is connected
    [REGION-03; refused REGION-01, state REGION-04, offsets REGION-04, polling REGION-04]
  merge.waiting: fewer than N operators have contributed [REGION-33]
  merge.complete: N operators have contributed [REGION-33 REGION-34 REGION-35]
  merge.repeated: the merge is complete, and a contributor comes again [REGION-37 REGION-49]
  merge.silent: the same, as documented [REGION-37]
  merge.heard: the notification is under way [REGION-36]

no api: requests of a kit that change nothing in the systems that are explored
  job.opened: the kit begins [none]
  request.unfit: the operator is down, or has nothing of what it is asked for [none]
  operator.control-port: the operator has a control input port [REGION-05]
  operator.start-position: the start position is a specific offset [REGION-06]
  bean.refused: the group is that of another region [REGION-01]
  bean.retired: a later checkpoint is complete [REGION-40]
  poll.empty: the poll returns nothing [none]
  merge.late: fewer than N operators have contributed, and the time to wait is over [REGION-39]
  poll.position-lost: the log no longer has the offset that was sought [REGION-52]
  poll.paused: another poll would not fit into the queue [REGION-08; pauses REGION-07]
  process.waits: there is no permit, or nothing to do [REGION-10]
"""

_HOLES = """
REGION-H01: A checkpoint without an owner
  A partition that nobody is assigned when a checkpoint is made is missing in it.
  [page, sections Ckpt-data, Reset, After-reset]
  The seek map is part of a checkpoint, below the offsets of what is assigned. [REGION-31, REGION-48]
REGION-H02: Everybody counts for himself
  Each operator reads the registered names at its own time, so one that comes first completes a merge alone.
  [page, sections Shared, Ckpt-data, Reset-ckpt]
  The names are those of the job's operators. [REGION-29, REGION-33, REGION-35]
REGION-H03: The message in hand survives a reset
  A reset clears queue and buffer, and the process thread submits what it has taken before.
  [page, sections Threads, Reset-init, Reset-ckpt]
  The process thread gets its permit before it takes a message. [REGION-42, REGION-47, REGION-48]
REGION-H04: A checkpoint before the reset
  A reset that was requested does not keep a checkpoint from completing. [page, sections Revoke, Assign, Drain]
  An operator that waits for a reset, is between callbacks or lacks an offset refuses. [REGION-30, REGION-31, REGION-48]
REGION-H05: The commit is the only fence
  An operator that is expelled after its commit writes a checkpoint with partitions of others.
  [page, sections Drain, Reset-ckpt]
  An operator looks at its membership when it writes a checkpoint, and a failed commit restarts it.
  [REGION-26, REGION-32, REGION-48]
REGION-H06: A second reset waits for ever
  A bean that notifies when a merge becomes complete says nothing to an operator that was relaunched since.
  [page, section Reset-ckpt]
  The bean notifies on each contribution to a complete merge. [REGION-37]
REGION-H07: A request during a reset is forgotten
  The page does not say what becomes of a reset that is requested while the region is being reset.
  [page, section Revoke]
  One reset is queued, and follows. [REGION-15]
REGION-H08: Looking, seeking and storing are three steps
  Two operators that see a partition for the first time seek different offsets, and one of them is stored.
  [page, sections Shared, Assign]
  An operator creates the variable if there is none, and seeks what it reads there. [REGION-20, REGION-21]
REGION-H09: Callbacks do not come in pairs
  A cooperative assignor calls back with new partitions alone, and the operator takes the others for gone.
  [page, section Revoke]
  Assignors are eager, and an assignment after a fetch is a cause of a reset. [REGION-17, REGION-51]
REGION-H10: A late submission brings a partition back
  A message taken before a revocation is submitted after the assignment, and its partition is held once more.
  [page, sections Revoke, Threads]
  A message whose partition is assigned no longer is dropped. [REGION-17, REGION-32, REGION-48]
REGION-H11: The control plane restarts in a merge
  Contributions and notifications are lost, and nobody contributes again. [page, section Shared]
  An operator that registers again repeats the contribution that it waits for. [REGION-03, REGION-49]
REGION-H12: Forced resets do not count
  Each forced reset sets the count of attempts back, so the maximum is never reached. [page, section Revoke]
  Only a complete checkpoint sets the count back. [REGION-39, REGION-50]
REGION-H13: An old seek map
  An operator that has fetched nothing since a reset seeks by its map after later checkpoints.
  [page, section After-reset]
  A map is out of date once a later checkpoint is complete, and its operator requests a reset. [REGION-45, REGION-48]
REGION-H14: Start position of new partitions
  A partition that is born with records is begun at its end, and they are never read. [page, sections Intro, Assign]
  A partition unknown at subscription is read from its beginning. [REGION-46, REGION-47]
REGION-H15: A reset into deleted records
  An offset that the log no longer has makes the client jump, and the jump is stored. [page, section Reset-ckpt]
  The position after the first fetch is compared with the offset sought. [REGION-52]
REGION-H16: The wait is shorter than a relaunch
  An operator waits for 15 seconds, and a relaunch that the region allows takes longer. [page, section Reset-ckpt]
  The wait lasts as long as the region's reset, and the poll interval is longer. [REGION-38, REGION-39]
REGION-H17: Names and settings that contradict
  Hashes of group ids collide, names outlive operators, and an operator-driven region has one start operator.
  [page, sections Assume, Init, Shared, Drain]
  The name is the group id, the merge counts present operators, and such groups are refused.
  [REGION-01, REGION-02, REGION-33]
"""

REGION_CATALOGUE, _ = read_requirements(_REQUIREMENTS)
"""Every requirement by its id."""
REGION_RULES = read_rules(_RULES, requirements=REGION_CATALOGUE)
"""Every rule by its name, one for each branch of the handlers of operators, bean and region."""
REGION_HOLES = read_holes(_HOLES, requirements=REGION_CATALOGUE)
"""Every hole by its id: what the page lacks, or where it contradicts itself, with the repair that the model has."""
REGION = Specification(
    REGION_CATALOGUE, REGION_RULES, subject="consistent region", badge="consistent region", shelf="regions"
)
"""Requirements and rules."""
