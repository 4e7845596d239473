"""Requirements of fetches that are sent ahead."""

from fencepost.model.catalogue.classic.client.constructors import may, must, should
from fencepost.model.catalogue.requirement import Requirement

PREFETCH: tuple[Requirement, ...] = (
    may(
        "PREFETCH-01",
        "Prefetch by the total",
        "A client may fetch all partitions when fewer records are retained than a poll returns.",
        "KIP-41",
        needs=("driver",),
        untestable="one of several rules that a client may choose from",
    ),
    may(
        "PREFETCH-02",
        "Prefetch by the share",
        "A client may fetch a partition that retains less than its share of a poll.",
        "KIP-41",
        needs=("driver",),
        untestable="one of several rules that a client may choose from",
    ),
    must(
        "PREFETCH-03",
        "Empty partitions are fetched",
        "A partition of which nothing is buffered is fetched within a finite number of polls, whatever the limit "
        "and the number of partitions.",
        "KIP-41",
        needs=("driver",),
    ),
    must(
        "PREFETCH-04",
        "Fetch behind the buffer",
        "A fetch that is sent while records are retained starts behind them.",
        "FetcherTest",
        needs=("driver",),
    ),
    should(
        "PREFETCH-05",
        "One fetch at a time",
        "No fetch should be sent for a partition that has one unanswered.",
        "KIP-41, Apache Kafka source",
    ),
    should(
        "PREFETCH-06",
        "Bounded buffers",
        "The records that a client retains should be bounded.",
        "KIP-41",
        needs=("driver",),
        untestable="buffers are bounded by megabytes, more than a run writes",
    ),
    should(
        "PREFETCH-07",
        "Fetch before returning",
        "The next fetches should be sent before a poll returns its records.",
        "KIP-41, Apache Kafka source",
        needs=("driver",),
    ),
    must(
        "PREFETCH-08",
        "What is not fetched",
        "No fetch is sent for a partition that is not assigned, is paused or has no position.",
        "FetcherTest",
        incidental=True,
    ),
    must(
        "PREFETCH-09",
        "Fetches of retained partitions",
        "A client that resumes at a partition with records left fetches none of that partition, or keeps its bound "
        "by another rule.",
        "theorems of this project",
        needs=("driver",),
    ),
    should(
        "PREFETCH-10",
        "Order of fetches",
        "The order of partitions in fetches should rotate, so that the size limit of a response starves none.",
        "KIP-74, KIP-227",
    ),
    may(
        "PREFETCH-11",
        "Prefetch by emptiness",
        "A client may fetch a partition only when nothing of it is buffered.",
        "FetcherTest",
        needs=("driver",),
        untestable="one of several rules that a client may choose from",
    ),
)
