"""Where the parts of the consumer group in a consistent region are."""

from fencepost.model.protocols import ProtocolEntry

REGION = ProtocolEntry(
    "region",
    specifications={"consistent region": "fencepost.model.region.specification:REGION"},
    holes="fencepost.model.region.specification:REGION_HOLES",
    hole_searches="fencepost.model.region.explore.holes:region_holes",
    theorems="fencepost.model.region.proofs:REGION_THEOREMS",
    judge="fencepost.traces.region.judge:RegionProtocol",
    history="fencepost.traces.region.history:RegionRecorder",
    words="fencepost.conformance.region.protocol:WORDS",
    description="fencepost.conformance.region.protocol:REGION",
    commands={
        "explore": "fencepost.conformance.cli.designs:explore_holes",
        "prove": "fencepost.conformance.cli.designs:prove_kernel",
        "serve": "fencepost.conformance.region.serve:run",
    },
)
