"""What the classic protocol adds to the zoo: bugs and mutants of coordinators, members, assignors and fetchers."""

from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType

from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS, environments
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN
from fencepost.conformance.classic.zoo.client_stand import CLIENTS, ClientFault, hunt_assignor
from fencepost.conformance.classic.zoo.clients import CLIENT_BUGS, NOT_PUT_BACK, reference
from fencepost.conformance.classic.zoo.comparison import find_difference
from fencepost.conformance.classic.zoo.coordinator_stand import COORDINATORS, CoordinatorFault
from fencepost.conformance.classic.zoo.strange_clients_run import STRANGE_CLIENTS
from fencepost.conformance.classic.zoo.strangers_run import CLASSIC_STRANGERS
from fencepost.conformance.zoo.fault import Side, mutant_fault
from fencepost.conformance.zoo.hunt import hunt_fault
from fencepost.conformance.zoo.mutants import Mutant
from fencepost.conformance.zoo.registry import ProtocolZoo, SubjectHunts
from fencepost.conformance.zoo.strategies import BASELINES, GROUPS


def mutant_of_coordinator(mutant: Mutant) -> CoordinatorFault:
    """A mutant of the bundled coordinator as a fault."""
    return mutant_fault(mutant, Side.COORDINATOR, PLAIN, environments.put_in_mutant)


@cache
def coordinator_mutants() -> Mapping[str, CoordinatorFault]:
    """The systematic mutants of the bundled coordinator by their names, in the order of the source."""
    return {mutant.name: mutant_of_coordinator(mutant) for mutant in environments.coordinator_mutants()}


@cache
def member_mutants() -> Mapping[str, ClientFault]:
    """The systematic mutants of the reference client's model by their names, in the order of the source."""
    return {
        mutant.name: mutant_fault(mutant, Side.MEMBER, reference.EAGER, reference.put_in_mutant)
        for mutant in reference.member_mutants()
    }


_CLIENT_HUNTS = SubjectHunts(CLIENTS.strategies, partial(hunt_fault, CLIENTS))
CLASSIC_ZOO = ProtocolZoo(
    MappingProxyType({**COORDINATOR_BUGS, **CLIENT_BUGS}),
    NOT_PUT_BACK,
    MappingProxyType(
        {
            Side.COORDINATOR: SubjectHunts(COORDINATORS.strategies, partial(hunt_fault, COORDINATORS), BASELINES),
            Side.MEMBER: _CLIENT_HUNTS,
            Side.FETCHER: _CLIENT_HUNTS,
            Side.ASSIGNOR: SubjectHunts((GROUPS,), hunt_assignor),
        }
    ),
    coordinator_mutants,
    member_mutants,
    find_difference,
    (CLASSIC_STRANGERS, STRANGE_CLIENTS),
)
