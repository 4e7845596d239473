"""The transition system of the push coordinator within its bounds."""

from fencepost.model.explore.push.broker_actions import broker_actions
from fencepost.model.explore.push.consumer_actions import consumer_actions
from fencepost.model.explore.push.fault_actions import fault_actions, waiting_actions
from fencepost.model.explore.push.properties import push_checks
from fencepost.model.explore.push.row import PushBounds
from fencepost.model.explore.transition_system import Action, Column, TransitionSystem


def push_system(bounds: PushBounds) -> TransitionSystem:
    """The system: brokers and consumers with channels of limited length, and faults within their bounds."""
    due: list[Action] = []
    for broker in range(bounds.brokers):
        due += broker_actions(bounds, broker)
    for consumer in range(bounds.consumers):
        due += consumer_actions(bounds, consumer)
    due += waiting_actions(bounds)
    columns = (
        Column("faults left", "faults"),
        Column("ZooKeeper", "zookeeper"),
        *(Column(f"K{broker}", "broker") for broker in range(bounds.brokers)),
        *(Column(name, "link") for name in bounds.names),
    )
    checks = push_checks(bounds, tuple(due))
    return TransitionSystem(columns, bounds.initial(), (*due, *fault_actions(bounds)), checks=checks)
