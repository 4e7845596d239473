"""Moves of transactional producers, each with a number: transactions begin, commit offsets, and end."""

from contextlib import suppress
from typing import Any

from fencepost.conformance.classic.schedules.moves.cast import Cast, Transaction
from fencepost.conformance.classic.schedules.moves.registry import SENDER_OPTIONS, move_kind
from fencepost.conformance.run.requests import Blocked, TransactionalProducer
from fencepost.conformance.run.schedule import Move
from fencepost.traces.events import Body

TRANSACTION_TIMEOUT_MS = 600_000
"""Longer than any schedule lasts on real time."""


async def initialize_transaction(cast: Cast, number: int) -> Transaction:
    """A producer with an id and no open transaction. Raises `Blocked`."""
    context = cast.context
    name = f"{context.group_id}-producer" + (f"-{number}" if number else "")
    producer = TransactionalProducer(context, context.group_id, name)
    cast.transactions.pop(number, None)
    await producer.begin_epoch(TRANSACTION_TIMEOUT_MS)
    cast.transactions[number] = transaction = Transaction(producer)
    return transaction


@move_kind("init-producer", "producer")
async def initialize_producer(cast: Cast, move: Move) -> None:
    """InitProducerId, as a producer that starts again: its transaction is aborted, and its predecessor is fenced."""
    with suppress(Blocked):
        await initialize_transaction(cast, move.number("producer"))


@move_kind("transact", *SENDER_OPTIONS, "partition", "further", "offset", "note", "producer", "epoch")
async def commit_in_transaction(cast: Cast, move: Move) -> None:
    """TxnOffsetCommit in the actor's group of one partition, and of a `further` one; `epoch` is the distance from the
    producer's own. The transaction begins if none is open; left out if it cannot begin."""
    actor, number = cast.actor_at(move.who), move.number("producer")
    group_id = actor.context.group_id
    try:
        transaction = cast.transactions.get(number) or await initialize_transaction(cast, number)
        if actor.group not in transaction.groups:
            await transaction.producer.add_group(group_id)
            transaction.groups.add(actor.group)
    except Blocked:
        return
    rows: dict[tuple[str, int] | int, Body] = {move.number("partition"): {"committed_offset": move.number("offset", 1)}}
    if "further" in dict(move.options):
        rows[move.number("further")] = {"committed_offset": move.number("offset", 1) + 1}
    defaults = {"committed_leader_epoch": -1, "committed_metadata": str(move.get("note"))}
    producer = transaction.producer
    sender: dict[str, Any] = {
        "producer_epoch": producer.epoch + move.number("epoch"),
        "generation_id": actor.member.generation,
        "member_id": actor.member.id,
        "group_instance_id": actor.member.instance,
    }
    sender |= cast.identity_fields(actor, move, "generation_id")
    topics = cast.context.partitions_by_topic(rows, defaults)
    await cast.track_request(producer.send_commit(topics, group_id=group_id, **sender), None, {})


@move_kind("end", "producer", "abort", "version")
async def end_transaction(cast: Cast, move: Move) -> None:
    """EndTxn, if the producer has a transaction open."""
    transaction = cast.transactions.get(move.number("producer"))
    if transaction is not None and transaction.groups:
        transaction.groups.clear()
        with suppress(Blocked):
            await transaction.producer.end(committed=not move.get("abort"))
