"""Where the parts of the push coordinator are."""

from fencepost.model.protocols import ProtocolEntry

PUSH = ProtocolEntry(
    "push",
    specifications={"push coordinator": "fencepost.model.push.specification:PUSH"},
    holes="fencepost.model.push.specification:PUSH_HOLES",
    hole_searches="fencepost.model.push.explore.holes:push_holes",
    theorems="fencepost.model.push.proofs:PUSH_THEOREMS",
    judge="fencepost.traces.push.judge:PushProtocol",
    history="fencepost.traces.push.history:PushRecorder",
    words="fencepost.conformance.push.protocol:WORDS",
    description="fencepost.conformance.push.protocol:PUSH",
    commands={
        "explore": "fencepost.conformance.cli.designs:explore_holes",
        "prove": "fencepost.conformance.cli.designs:prove_kernel",
        "serve": "fencepost.conformance.push.serve:run",
    },
)
