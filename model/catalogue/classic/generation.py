"""Generations, leaders and the choice of the protocol."""

from fencepost.model.catalogue.requirement import Requirement, must

GEN: tuple[Requirement, ...] = (
    must(
        "GEN-01",
        "First generation",
        "The first generation of a new group is 1.",
        "JoinGroupRequestTest",
    ),
    must(
        "GEN-02",
        "Generation counts rounds",
        "Every completed join phase raises the generation by exactly 1, phases that end Empty included.",
        "GroupMetadataManagerTest",
    ),
    must(
        "GEN-03",
        "Only join phases raise the generation",
        "Nothing but a completed join phase raises the generation.",
        "Apache Kafka source",
        incidental=True,
    ),
    must(
        "GEN-04",
        "One protocol, one leader",
        "Without a failover, the successful answers of one generation agree on the protocol and, static replacement "
        "apart, on the leader.",
        "client-side assignment proposal",
        incidental=True,
    ),
    must(
        "GEN-05",
        "One leader",
        "Static replacement apart, at most one member per generation is told that it is the leader.",
        "client-side assignment proposal",
        incidental=True,
    ),
    must(
        "GEN-06",
        "Leader has rejoined",
        "The leader of a round is a member that rejoined in it.",
        "ClassicGroupTest",
        incidental=True,
    ),
    must(
        "GEN-07",
        "Leader keeps its role",
        "A leader that rejoined stays the leader.",
        "ClassicGroupTest",
    ),
    must(
        "GEN-08",
        "Protocol suits all",
        "The selected protocol is offered by all members.",
        "ClassicGroupTest, consumer group protocol chapter",
        incidental=True,
    ),
    must(
        "GEN-09",
        "Protocol has most votes",
        "The selected protocol has the most votes, each member voting for the first of its protocols that all "
        "members offer.",
        "ClassicGroupTest",
    ),
    must(
        "GEN-10",
        "List order is preference",
        "The order of a member's protocol list is its order of preference.",
        "client-side assignment proposal, ClassicGroupMemberTest",
    ),
    must(
        "GEN-11",
        "Rolling upgrade",
        "A protocol that one member lacks is not selected; once every member offers and prefers it, it is.",
        "client-side assignment proposal",
    ),
    must(
        "GEN-12",
        "Protocol type is the group's",
        "The protocol type in an answer is that of the group.",
        "KIP-559",
        incidental=True,
    ),
    must(
        "GEN-13",
        "Recreated group starts over",
        "After a group was deleted and created again its first generation is 1.",
        "Apache Kafka source",
    ),
    must(
        "GEN-14",
        "Emptied group counts on",
        "A group that emptied but was not deleted goes on counting generations.",
        "GroupMetadataManagerTest",
    ),
    must(
        "GEN-15",
        "Previous generation is fenced",
        "Once a member has been given the next generation, SyncGroup, Heartbeat and OffsetCommit with the previous "
        "one are refused.",
        "consumer group protocol chapter",
        incidental=True,
    ),
    must(
        "GEN-16",
        "Assignment of the generation",
        "The assignment that a member gets in a generation is the one that its leader sent in that generation.",
        "client-side assignment proposal",
        incidental=True,
    ),
    must(
        "GEN-17",
        "No Stable without the leader",
        "A generation never becomes Stable without an accepted SyncGroup of its leader.",
        "GroupMetadataManagerTest",
        incidental=True,
    ),
    must(
        "GEN-18",
        "Kept member is fenced",
        "A static member kept without rejoining is fenced by the new generation like any other until it rejoins.",
        "GroupMetadataManagerTest",
    ),
    must(
        "GEN-19",
        "Kept members vote",
        "The votes of static members kept without rejoining count.",
        "Apache Kafka source",
    ),
    must(
        "GEN-20",
        "Members of a round",
        "The members of a round are exactly those that rejoined and the static ones that were kept.",
        "GroupMetadataManagerTest",
        incidental=True,
    ),
)
