"""Requirements of the push coordinator: offsets, the consumer's handlers, the bytes of messages."""

from fencepost.model.catalogue.requirement import Requirement, must

CONSUMERS: tuple[Requirement, ...] = (
    must(
        "PUSH-45",
        "Offsets in a ping response",
        "A ping response contains one offset per consumed partition with auto-commit, and no fields without.",
        "draft, section 9-ping",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-46",
        "Offsets of the next owner",
        "The next owner begins neither beyond what the application consumed nor before the last recorded offset.",
        "draft, sections 9-ping, 9-start",
        incidental=True,
    ),
    must(
        "PUSH-47",
        "Stop closes every fetcher",
        "Stop closes every running fetcher and empties its queues whatever the flag says.",
        "draft, section 9-stop",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-48",
        "Start needs a Stop",
        "A Start for a consumer that has not been stopped is refused with an error, and no legal schedule has one.",
        "draft, section 9-start (3)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-49",
        "Registry, fetchers and flag agree",
        "After a successful Start registry, running fetchers and flag agree.",
        "draft, section 9-start (4-6)",
        untestable="the kit plays the consumers",
    ),
    must(
        "PUSH-50",
        "Messages round-trip",
        "Every message round-trips through the encoder with the sizes of section 2; size excludes itself.",
        "draft, sections 5, 9 formats",
    ),
    must(
        "PUSH-51",
        "Responses can be told apart",
        "A response can be told apart from every other response on the same channel.",
        "draft, section 9",
    ),
    must(
        "PUSH-52",
        "A slow group delays boundedly",
        "One slow group delays another group of the same queue at most (retries+1) times the wait plus back-off.",
        "draft, sections 7, Open 2",
        incidental=True,
    ),
)
