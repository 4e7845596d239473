"""Where the sources of requirements can be read: the address of a proposal, a ticket, or a file of Apache Kafka.

A source without an address has none here: a book, a page whose address was not looked up, a requirement of our own.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache

from fencepost.model.catalogue.methods import Method, read_methods

TICKET = "https://issues.apache.org/jira/browse/"
PROPOSAL = "https://cwiki.apache.org/confluence/display/KAFKA/"
JAVADOC = "https://kafka.apache.org/38/javadoc/org/apache/kafka/clients/consumer/"
GITHUB = "https://github.com/"
KAFKA_3_8 = f"{GITHUB}apache/kafka/blob/3.8.0/"
KAFKA, CHAPTER = "Apache Kafka source", "consumer group protocol chapter"
SCHEMAS = "clients/src/main/resources/common/message/"
COORDINATOR = "group-coordinator/src/main/java/org/apache/kafka/coordinator/group/GroupCoordinatorShard.java"
_PROPOSALS = """
KIP-41%3A+KafkaConsumer+Max+Records KIP-54+-+Sticky+Partition+Assignment+Strategy
KIP-62%3A+Allow+consumer+to+send+heartbeats+from+a+background+thread KIP-74%3A+Add+Fetch+Response+Size+Limit+in+Bytes
KIP-88%3A+OffsetFetch+Protocol+Update KIP-134%3A+Delay+initial+consumer+group+rebalance
KIP-227%3A+Introduce+Incremental+FetchRequests+to+Increase+Partition+Scalability KIP-229%3A+DeleteGroups+API
KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation KIP-341%3A+Update+Sticky+Assignor%27s+User+Data+Protocol
KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances
KIP-394%3A+Require+member.id+for+initial+join+group+request KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol
KIP-430+-+Return+Authorized+Operations+in+Describe+Responses KIP-447%3A+Producer+scalability+for+exactly+once+semantics
KIP-496%3A+Administrative+API+to+delete+consumer+offsets KIP-518%3A+Allow+listing+consumer+groups+per+state
KIP-559%3A+Make+the+Kafka+Protocol+Friendlier+with+L7+Proxies KIP-568%3A+Explicit+rebalance+triggering+on+the+Consumer
KIP-699%3A+Update+FindCoordinator+to+resolve+multiple+Coordinators+at+a+time
KIP-800%3A+Add+reason+to+JoinGroupRequest+and+LeaveGroupRequest
KIP-814%3A+Static+membership+protocol+should+let+the+leader+skip+assignment
KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
KIP-881%3A+Rack-aware+Partition+Assignment+for+Kafka+Consumers KIP-1043%3A+Administration+of+groups
"""
_OTHERS = {
    "client-side assignment proposal": f"{PROPOSAL}Kafka+Client-side+Assignment+Proposal",
    "KIP-792": "https://cwiki.apache.org/confluence/pages/viewpage.action?pageId=191336614",
    "Redpanda source": f"{GITHUB}redpanda-data/redpanda/blob/v24.1.1/src/v/kafka/server/group.cc",
    "franz-go kfake source": f"{GITHUB}twmb/franz-go/blob/01f206a7e32c/pkg/kfake/groups.go",
}


def links_of(source: str) -> tuple[tuple[str, str | None], ...]:
    """Each source that a requirement names, with its address; None where none is known."""
    return tuple((name, _address_of(name)) for name in source.split(", "))


def _address_of(name: str) -> str | None:
    if name.startswith("KAFKA-"):
        return f"{TICKET}{name}"
    if name.endswith(" documentation"):
        return f"{JAVADOC}{name.removesuffix(' documentation')}.html"
    return f"{KAFKA_3_8}{SCHEMAS}{name}" if name.endswith("Request.json") else _addresses().get(name)


def links_for(source: str, apis: Collection[str], id: str = "") -> tuple[tuple[str, str | None], ...]:
    """Each source that a requirement about some APIs names, with its address.

    Of a class that is the method that shows what the requirement with this id says; of the message schemas of Apache
    Kafka the file of each API. Its source, which stands beside a chapter where nothing has an address, is such a method
    too, or else the class to which every request about a group comes.
    """
    found: dict[str, str | None] = {}
    shown = {method.class_name: method for method in _methods() if id in method.requirements}
    for name, address in links_of(source):
        if name == "Kafka message schema" and apis:
            found |= {f"{api}Request.json": f"{KAFKA_3_8}{SCHEMAS}{api}Request.json" for api in apis}
        elif name in shown:
            found |= _link_of(shown.pop(name))
        else:
            found[name] = address
    if shown:  # in place of what names no method
        found = {name: address for name, address in found.items() if name != KAFKA and not name.endswith("Test")}
        for method in shown.values():
            found |= _link_of(method)
    elif KAFKA in found or (CHAPTER in found and not any(found.values())):
        found[KAFKA] = f"{KAFKA_3_8}{COORDINATOR}"
    return tuple(found.items())


def _link_of(method: Method) -> dict[str, str]:
    return {f"{method.class_name}.{method.name}": f"{KAFKA_3_8}{method.path}#L{method.line}"}


@cache
def _methods() -> tuple[Method, ...]:
    return tuple(read_methods())


@cache
def _addresses() -> Mapping[str, str]:
    """The addresses of proposals by their number, of tests by their class, and of methods by their class and name."""
    found = dict(_OTHERS)
    for page in _PROPOSALS.split():
        found["-".join(re.findall(r"\w+", page)[:2])] = f"{PROPOSAL}{page}"
    for method in _methods():
        found |= _link_of(method)
        found[method.class_name] = f"{KAFKA_3_8}{method.path}"
    return found
