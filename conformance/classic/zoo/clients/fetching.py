"""Bugs of fetchers: which records are asked for, kept and returned."""

from collections.abc import Iterator
from typing import Any

from fencepost.adapters.classic.client.bodies import CompletedFetch, Fetcher, ReturnedRecords
from fencepost.adapters.classic.client.client import ReferenceClient
from fencepost.conformance.classic.zoo.clients.reference import COOPERATIVE, client_family, instead_of, replace_function
from fencepost.conformance.zoo.fault import Patch, Shipped, Side
from fencepost.model.classic.member import client as values
from fencepost.model.classic.member import lookup
from fencepost.model.classic.member.client import Client, ClientContext, position_of
from fencepost.model.classic.member.step import ClientStep, PausePartition
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import OffsetFetchResponse

fetching = client_family(Side.FETCHER)


def take_positions(patch: Patch) -> None:
    """Have records returned wherever the position is: the position follows them."""
    drop = lookup.return_records

    def follow(client: Client, given: Any, context: ClientContext) -> ClientStep:
        position = position_of(client, given.partition)
        if position is not None and position.offset is not None:
            client = lookup.with_position(client, evolve(position, offset=given.first))
        return drop(client, given, context)

    replace_function(patch, drop, follow)


@fetching.add(
    "BUG-145", "KAFKA-2342, https://github.com/apache/kafka/commit/fd3b4cc41e9", "POLL-11", "POLL-03", "MCOMMIT-19"
)
def a_late_response_is_delivered(patch: Patch) -> None:
    """A response to Fetch is delivered though the position is another one by now, and the position follows it."""
    patch.replace(Fetcher, "is_expected", lambda fetcher, client, partition, asked: asked is not None)
    patch.replace(
        Fetcher, "is_stale", lambda fetcher, client, completed: position_of(client, completed.partition) is None
    )
    take_positions(patch)


@fetching.add("BUG-146", "KAFKA-2978, https://github.com/apache/kafka/commit/e08b922aad4", "POLL-05", "PREFETCH-03")
def two_positions_part(patch: Patch) -> None:
    """The position of the next Fetch is kept apart, and stays behind when a response is dropped."""
    put_in_order = Fetcher.put_in_order
    fetched: dict[Any, int] = {}

    def fetch_behind(fetcher: Fetcher, wanted: list[Any]) -> list[Any]:
        rows = [evolve(one, offset=max(one.offset, fetched.get(one.partition, 0))) for one in wanted]
        return put_in_order(fetcher, rows)

    def add(fetcher: Fetcher, partition: Any, asked: int, batches: Any) -> None:
        if batches:
            fetched[partition] = batches[-1].next_offset
        add_batches(fetcher, partition, asked, batches)

    add_batches = Fetcher.add_batches
    patch.replace(Fetcher, "put_in_order", fetch_behind)
    patch.replace(Fetcher, "add_batches", add)


@fetching.add("BUG-147", "KAFKA-4547, https://github.com/apache/kafka/commit/813897a0065", "POLL-03", "POLL-09")
@instead_of(lookup.pause)
def a_paused_partition_loses_its_position(
    shipped: Shipped[ClientStep], client: Client, given: PausePartition, context: Any = None
) -> ClientStep:
    """A partition that is paused is set back to its committed offset when it is resumed."""
    step = shipped(client, given)
    position = position_of(step.client, given.partition)
    if position is None or given.is_paused:
        return step
    return ClientStep(lookup.with_position(step.client, evolve(position, offset=None, asked=0)), (), step.rules)


@fetching.add("BUG-151", "KAFKA-14196, https://github.com/apache/kafka/commit/536cdf692fb", "MCOMMIT-05", "POLL-19")
@instead_of(values.is_returnable)
def records_come_while_they_are_committed(shipped: Shipped[bool], client: Client, partition: Any) -> bool:
    """Records of partitions that are about to be revoked are returned while the commit before that is on its way."""
    rows = tuple(evolve(one, is_pending=False) for one in client.positions)
    return shipped(evolve(client, positions=rows), partition)


@fetching.add("BUG-152", "KAFKA-15836, https://github.com/apache/kafka/commit/4eb8ae68ca1", "POLL-01")
def the_limit_is_for_each_partition(patch: Patch) -> None:
    """The most records of a poll are counted for each partition anew."""
    take = Fetcher.take
    patch.replace(Fetcher, "take", lambda fetcher, completed, count: take(fetcher, completed, fetcher.limit))

    def drain(fetcher: Fetcher, client: Client) -> Iterator[ReturnedRecords]:
        for _ in range(len(fetcher.queue)):
            completed = fetcher.queue.popleft()
            if fetcher.is_stale(client, completed):
                continue
            if not values.is_returnable(client, completed.partition):
                fetcher.queue.append(completed)
                continue
            taken = fetcher.take(completed, fetcher.limit)
            if completed.offsets:
                fetcher.queue.append(completed)
            yield taken

    patch.replace(Fetcher, "drain", drain)


@fetching.add(
    "BUG-155", "librdkafka issue 4686, https://github.com/confluentinc/librdkafka/commit/5b798cdc6", "POLL-03"
)
def resuming_what_was_not_paused_goes_back(patch: Patch) -> None:
    """Resuming a partition that was not paused sets its position back to that at its last pause."""
    pause = lookup.pause
    at_pause: dict[Any, int] = {}

    def pause_and_keep(client: Client, given: PausePartition) -> ClientStep:
        position = position_of(client, given.partition)
        step = pause(client, given)
        if position is None or position.offset is None:
            return step
        if given.is_paused:
            at_pause[given.partition] = position.offset
            return step
        back = at_pause.get(given.partition, 0)
        moved = evolve(position, is_paused=False, offset=position.offset if position.is_paused else back)
        return ClientStep(lookup.with_position(step.client, moved), (), step.rules)

    replace_function(patch, pause, pause_and_keep)


@fetching.add(
    "BUG-157",
    "kafka-python PR 1367, https://github.com/dpkp/kafka-python/commit/441aeb86",
    "POLL-03",
    "POLL-11",
    "MCOMMIT-19",
)
def a_batch_is_returned_whole(patch: Patch) -> None:
    """The records of a batch before the offset that was asked for are returned, too."""
    patch.replace(Fetcher, "is_wanted", lambda fetcher, offset, asked: True)


@fetching.add("BUG-159", "librdkafka issue 417, https://github.com/confluentinc/librdkafka/issues/417", "PREFETCH-10")
def partitions_are_asked_for_in_one_order(patch: Patch) -> None:
    """Partitions are asked for in the same order each time."""
    patch.replace(Fetcher, "put_in_order", lambda fetcher, wanted: wanted)


@fetching.add("BUG-161", "kafkajs PR 367, https://github.com/tulios/kafkajs/commit/a1c48de1", "POLL-11", "POLL-03")
def a_seek_does_not_drop_what_was_asked_for(patch: Patch) -> None:
    """A response that was asked for before a seek is returned after it, and the position follows."""
    patch.replace(Fetcher, "is_expected", lambda fetcher, client, partition, asked: asked is not None)
    is_stale = Fetcher.is_stale

    def is_foreign(fetcher: Fetcher, client: Client, completed: CompletedFetch) -> bool:
        position = position_of(client, completed.partition)
        return is_stale(fetcher, client, completed) and (position is None or position.offset is None)

    patch.replace(Fetcher, "is_stale", is_foreign)
    take_positions(patch)


@fetching.add(
    "BUG-162",
    "kafkajs issue 124, https://github.com/tulios/kafkajs/commit/fce9236f",
    "COOP-07",
    "MCOMMIT-19",
    setting=COOPERATIVE,
)
@instead_of(lookup.on_offsets)
def fetched_offsets_replace_all_positions(
    shipped: Shipped[ClientStep], client: Client, handle: int, response: OffsetFetchResponse, context: ClientContext
) -> ClientStep:
    """Committed offsets of some partitions replace the positions of all."""
    rows = tuple(one if one.partition in response.offsets else evolve(one, offset=None) for one in client.positions)
    return shipped(evolve(client, positions=rows), handle, response, context)


@fetching.add(
    "BUG-163",
    "ruby-kafka PR 665, https://github.com/zendesk/ruby-kafka/commit/cc13f1f",
    "POLL-10",
    "MCOMMIT-19",
    "POLL-03",
)
def queued_batches_survive_a_rebalance(patch: Patch) -> None:
    """Fetched records survive the loss of their partition, and are returned when it is back."""

    def drain(fetcher: Fetcher, client: Client) -> Iterator[ReturnedRecords]:
        left = fetcher.limit
        for _ in range(len(fetcher.queue)):
            completed = fetcher.queue.popleft()
            if not left or not values.is_returnable(client, completed.partition):
                fetcher.queue.append(completed)
                continue
            taken = fetcher.take(completed, left)
            left -= len(taken.offsets)
            if completed.offsets:
                fetcher.queue.appendleft(completed)
            yield taken

    patch.replace(Fetcher, "drain", drain)
    take_positions(patch)


@fetching.add(
    "BUG-164", "ruby-kafka PR 625, https://github.com/zendesk/ruby-kafka/commit/b34543a", "POLL-03", "MCOMMIT-01"
)
@instead_of(Fetcher.add_batches)
def an_empty_response_moves_the_position(
    shipped: Shipped[None], fetcher: Fetcher, partition: Any, asked: int, batches: Any
) -> None:
    """The position moves on after a response without records."""
    if batches:
        shipped(fetcher, partition, asked, batches)
    else:
        fetcher.queue.append(CompletedFetch(partition, asked, [], asked + 1))


@fetching.add(
    "BUG-165", "platformatic PR 251, KAFKA-8950, https://github.com/platformatic/kafka/commit/f126625", "PREFETCH-03"
)
def a_lost_fetch_is_waited_for(patch: Patch) -> None:
    """A node whose response to Fetch was lost counts as one that owes a response for ever."""
    send, receive, is_fetching = ReferenceClient.send, ReferenceClient.receive, ReferenceClient.is_fetching
    marked: dict[int, Any] = {}

    def mark(client: ReferenceClient, api: str, body: Any, handle: int, node: int) -> None:
        send(client, api, body, handle, node)
        if api == "Fetch":
            marked[node] = client.links.get(node)

    def clear(client: ReferenceClient, sent: Any, body: Any) -> None:
        if sent.api == "Fetch":
            for node, link in tuple(marked.items()):
                if client.links.get(node) is link and not is_fetching(client, node):
                    del marked[node]
        receive(client, sent, body)

    patch.replace(ReferenceClient, "send", mark)
    patch.replace(ReferenceClient, "receive", clear)
    patch.replace(ReferenceClient, "is_fetching", lambda client, node: node in marked or is_fetching(client, node))
