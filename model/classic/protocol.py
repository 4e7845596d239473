"""Where the parts of the classic protocol are."""

from fencepost.model.protocols import ProtocolEntry

CLASSIC = ProtocolEntry(
    "classic",
    specifications={
        "coordinator": "fencepost.model.classic.catalogue:CLASSIC",
        "client": "fencepost.model.classic.catalogue.client:CLASSIC_CLIENT",
    },
    judge="fencepost.traces.classic.protocol:ClassicProtocol",
    history="fencepost.traces.classic.history:HistoryRecorder",
    recordings="fencepost.traces.classic.client.client:RECORDINGS",
    words="fencepost.conformance.reports.incident_words:CLASSIC_WORDS",
    coordinator="fencepost.adapters.classic.coordinator:KAFKA",
    description="fencepost.conformance.classic.protocol:CLASSIC",
    clients="fencepost.conformance.classic.clients:CLASSIC_CLIENTS",
    driven_clients="fencepost.conformance.classic.clients:DRIVEN_CLIENTS",
    zoo="fencepost.conformance.classic.zoo.zoo:CLASSIC_ZOO",
    commands={
        "explore": "fencepost.conformance.classic.exploration:explore_classic",
        "prove": "fencepost.conformance.classic.proofs:prove_classic",
        "serve": "fencepost.conformance.cli.record:serve_classic",
        "swarm": "fencepost.conformance.classic.swarm.run:run_swarm",
    },
)
