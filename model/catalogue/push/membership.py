"""Requirements of the push coordinator: lookup, registration and removal of consumers."""

from fencepost.model.catalogue.requirement import Requirement, must

MEMBERSHIP: tuple[Requirement, ...] = (
    must(
        "PUSH-22",
        "Bootstrap round robin",
        "The consumer tries the bootstrap brokers round robin, without end, until shut down.",
        "draft, section 5 (1-1.3)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-23",
        "Metadata names the coordinator",
        "The metadata answer names the live brokers and the elected coordinator, or an error when there is none.",
        "draft, section 5-meta",
    ),
    must(
        "PUSH-24",
        "Any broker tells",
        "Any broker answers a metadata request.",
        "draft, section 5-meta",
    ),
    must(
        "PUSH-25",
        "One registration per channel",
        "Exactly one register request is sent per channel and it is answered.",
        "draft, sections 5 (4), 5-reg",
    ),
    must(
        "PUSH-26",
        "Ids are unique in a group",
        "A registration with an id already live in the group is refused and its channel closed.",
        "draft, section 5-reg",
    ),
    must(
        "PUSH-27",
        "Session timeout above the minimum",
        "A registration whose session timeout is not above the minimum is refused.",
        "draft, section 5-reg",
    ),
    must(
        "PUSH-28",
        "A refused consumer starts over",
        "A refused consumer starts over from the lookup.",
        "draft, section 5 (5)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-29",
        "A registration rebalances",
        "Every accepted registration triggers a rebalance of its group.",
        "draft, section 5-reg",
    ),
    must(
        "PUSH-30",
        "Interest of a new group",
        "A new group is entered for each of its topics, existing or not, and in the wildcard list if it has a pattern.",
        "draft, section 5-newgroup",
    ),
    must(
        "PUSH-31",
        "Consumers only respond",
        "After registering, the consumer never sends a request, only responses.",
        "draft, sections Overview, 5",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-32",
        "A silent coordinator is left",
        "A consumer without any request for its configured time stops its fetchers before it looks for a coordinator.",
        "draft, section Overview",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-33",
        "The last member",
        "Removing the last member does not start a rebalance.",
        "draft, section 6 (2.1)",
    ),
)
