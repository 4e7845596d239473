"""Assignments that a client must not apply, and topics that grow."""

from fencepost.adapters.client.cluster import edit
from fencepost.conformance.clients.stage import PARTITIONS, ClientScenarioFamily, ClientStage, NotShown, StageBlocked
from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.wire.codec import Body

FAMILY = ClientScenarioFamily()
METADATA_S = 8.0
"""How long a client may take to notice that a topic has grown, for this to be seen."""


@FAMILY.add("MEMBER-20")
async def an_assignment_outside_the_subscription(stage: ClientStage) -> None:
    """The client is assigned a partition of a topic that it does not subscribe to."""
    foreign = f"{stage.place.topic}-foreign"
    await stage.cluster.create_topic(foreign, 1, 1)

    def change(body: Body) -> Body:
        return {**body, "assignment": encode_assignment([(foreign, 0), (stage.place.topic, 0)], version=0)}

    stage.play("SyncGroup", edit(change), "the response to SyncGroup has a topic that is not subscribed")
    await stage.start()
    told = await stage.response("SyncGroup", seconds=stage.start_seconds)
    await stage.watch_rejoin(told.sequence + 1)


@FAMILY.add("MEMBER-21")
async def a_topic_that_grows(stage: ClientStage) -> None:
    """The topic gets more partitions while the client leads."""
    await stage.start_and_become_stable()
    since = stage.mark()
    await stage.cluster.grow_topic(stage.place.topic, PARTITIONS + 2)
    try:
        await stage.request("Metadata", since=since, seconds=METADATA_S)
    except StageBlocked as reason:
        raise NotShown(f"the client asked for no metadata within {METADATA_S:g} s") from reason
    await stage.watch_rejoin(since)
