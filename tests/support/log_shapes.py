"""Draws logs as people have them: a group's life, in the words of a release, in a layout, as a platform hands it out,
with damage. The story is known, since the same lines without a layout are their own measure."""

import gzip
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

BEGAN = datetime(2023, 10, 5, 23, 40, 0)
Line = tuple[datetime, str, str]
"""Time, message and logger."""
RELEASES = ("0.10", "1.0", "2.2", "2.5", "2.8", "3.4", "4.1")
SCALA, JAVA = "kafka.coordinator.group.GroupCoordinator", "org.apache.kafka.coordinator.group.GroupMetadataManager"


@dataclass(frozen=True, slots=True)
class LogShape:
    """A drawn log: the files as bytes, the same lines plain, and what was drawn. `is_whole` says whether nothing was
    taken from the lines; `has_times` that their times are in the files to the millisecond."""

    name: str
    files: tuple[bytes, ...]
    plain: bytes
    is_whole: bool
    has_times: bool = True


# --- A group's life in the words of a release.


def tell_life(draw: random.Random, release: str) -> list[Line]:
    """The lines about a few groups whose coordinator writes as in this release."""
    lines: list[Line] = []
    for number in range(draw.randint(1, 3)):
        name = draw.choice(("orders", "billing-v2", "my group", "logs.prod_7", "generation 3"))
        lines += tell_group(draw, release, f"{name}-{number}")
    return sorted(lines, key=lambda line: line[0])


def tell_group(draw: random.Random, release: str, group: str) -> list[Line]:
    """The lines about one group: members come and go, and one rebalance follows the other."""
    now, generation, members, lines = BEGAN, 0, 0, list[Line]()
    place = draw.randrange(50)

    def say(message: str) -> None:
        nonlocal now
        now += timedelta(milliseconds=draw.choice((1, 2, 17, 230, 3_000, 9_000, 40_000)))
        head = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={place}] " if release == "4.1" else ""
        lines.append((now, (head or "[GroupCoordinator 1]: ") + message, JAVA if head else SCALA))

    for _ in range(draw.randint(2, 8)):
        comes = members == 0 or draw.random() < 0.5
        member = f"consumer-{draw.randrange(1 << 32):08x}"
        say(preparing(release, group, generation, place, comes, member))
        members += 1 if comes else -1
        generation += 1
        if members == 0:
            say(emptied(release, group, generation, place))
            continue
        say(stabilized(release, group, generation, place, members))
        say(assigned(release, group, generation, members, member))
    return lines


def where(release: str, place: int) -> str:
    """The partition of a group, where a release names it."""
    return "" if release in ("0.10", "4.1") else f" (__consumer_offsets-{place})"


def dot(release: str) -> str:
    """A full stop where the release writes one."""
    return "." if release == "4.1" else ""


def preparing(release: str, group: str, generation: int, place: int, comes: bool, member: str) -> str:
    """The line about the beginning of a rebalance."""
    if release in ("0.10", "1.0"):
        word = "restabilize" if release == "0.10" else "rebalance"
        return f"Preparing to {word} group {group} with old generation {generation}{where(release, place)}"
    new = f"Adding new member {member}" + ("" if release == "2.2" else " with group instance id None")
    reason = new if comes else f"removing member {member} on heartbeat expiration"
    head = f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation}"
    return f"{head}{where(release, place)} (reason: {reason}){dot(release)}"


def stabilized(release: str, group: str, generation: int, place: int, members: int) -> str:
    """The line about the end of a join phase."""
    count = f" with {members} members" if release in ("2.8", "3.4", "4.1") else ""
    return f"Stabilized group {group} generation {generation}{where(release, place)}{count}{dot(release)}"


def emptied(release: str, group: str, generation: int, place: int) -> str:
    """The line about a group that nobody is in."""
    return f"Group {group} with generation {generation} is now empty{where(release, place)}{dot(release)}"


def assigned(release: str, group: str, generation: int, members: int, leader: str) -> str:
    """The line about an assignment."""
    who = f" {leader}" if release in ("3.4", "4.1") else ""
    count = f". The group has {members} members, 0 of which are static." if release in ("2.8", "3.4", "4.1") else ""
    return f"Assignment received from leader{who} for group {group} for generation {generation}{count}"


# --- A member's life in the words of a client.

CLIENTS = ("java-2.4", "java-3.4", "librdkafka", "kafka-python", "aiokafka", "franz-go")


def tell_member(draw: random.Random, client: str) -> list[Line]:
    """The lines of one member: it joins, joins again a few times, and leaves or is told that it is no member."""
    group, member = draw.choice(("orders", "my group", "logs.prod_7")), f"c-1-{draw.randrange(1 << 32):08x}"
    generation, now, lines = draw.randrange(1, 50), BEGAN, list[Line]()
    say, logger = CLIENT_WORDS[client], f"org.apache.kafka.{client}.Coordinator"

    def add(step: str) -> None:
        nonlocal now
        now += timedelta(milliseconds=draw.choice((1, 2, 17, 230, 3_000, 9_000)))
        row = say.get(step, "").format(group=group, member=member, generation=generation)
        if row:
            lines.append((now, row, logger))

    for step in ("ask", "named", "ask", "joined", "synced"):
        add(step)
    for _ in range(draw.randint(1, 5)):
        generation += 1
        for step in ("told", "ask", "joined", "synced"):
            add(step)
    add(draw.choice(("leave", "evicted")))
    return lines


JAVA_HEAD = "[Consumer clientId=c-1, groupId={group}] "
JAVA_GENERATION = "Generation{{generationId={generation}, memberId='{member}', protocol='range'}}"
RD_HEAD = "rdkafka#consumer-1| [thrd:main]: "
RD_JOINED = (
    RD_HEAD + "JoinGroup response: GenerationId {generation}, Protocol range, LeaderId {member} (me), my MemberId "
)
CLIENT_WORDS: dict[str, dict[str, str]] = {
    "java-2.4": {
        "ask": JAVA_HEAD + "(Re-)joining group",
        "synced": JAVA_HEAD + "Successfully joined group with generation {generation}",
        "told": JAVA_HEAD + "Attempt to heartbeat failed since group is rebalancing",
        "leave": JAVA_HEAD
        + "Member {member} sending LeaveGroup request to coordinator b:1 (id: 7 rack: null) due to close",
        "evicted": JAVA_HEAD + "Attempt to heartbeat failed for since member id {member} is not valid.",
    },
    "java-3.4": {
        "ask": JAVA_HEAD + "(Re-)joining group",
        "named": JAVA_HEAD + "Request joining group due to: need to re-join with the given member-id: {member}",
        "joined": JAVA_HEAD + "Successfully joined group with generation " + JAVA_GENERATION,
        "synced": JAVA_HEAD + "Successfully synced group in generation " + JAVA_GENERATION,
        "told": JAVA_HEAD + "Request joining group due to: group is already rebalancing",
        "leave": JAVA_HEAD
        + "Member {member} sending LeaveGroup request to coordinator b:1 (id: 7 rack: null) due to close",
        "evicted": JAVA_HEAD
        + "Attempt to heartbeat with "
        + JAVA_GENERATION
        + " and group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation",
    },
    "librdkafka": {
        "ask": RD_HEAD + 'Group "{group}": join with 1 subscribed topic(s)',
        "joined": RD_JOINED + "{member}, member metadata count 2: (no error)",
        "synced": RD_HEAD + "SyncGroup response: Success (40 bytes of MemberState data)",
        "told": RD_HEAD
        + 'Group "{group}" heartbeat error response in state up (join-state steady, 1 partition(s) assigned): '
        + "Broker: Group rebalance in progress",
        "leave": RD_HEAD + 'Group "{group}": leave (in state up)',
    },
    "kafka-python": {
        "ask": "(Re-)joining group {group}",
        "named": "Received member id {member} for group {group}; will retry join-group",
        "joined": "Successfully joined group {group} <Generation {generation} (member_id: {member}, protocol: range)>",
        "told": "Group {group} is rebalancing; rejoining.",
        "leave": "Leaving consumer group {group} (member {member}).",
    },
    "aiokafka": {
        "ask": "(Re-)joining group {group}",
        "joined": "Joined group '{group}' (generation {generation}) with member_id {member}",
        "synced": "Successfully synced group {group} with generation {generation}",
        "told": "Heartbeat failed for group {group} because it is rebalancing",
        "evicted": "Heartbeat failed: local member_id was not recognized; resetting and re-joining group",
    },
    "franz-go": {
        "ask": "joining group; group: {group}",
        "joined": "joined, balancing group; group: {group}, member_id: {member}, instance_id: <nil>, generation: "
        "{generation}, balance_protocol: range, leader: true",
        "synced": "synced; group: {group}, assigned: t[0 1]",
        "leave": "leaving group; group: {group}, member_id: {member}, instance_id: <nil>",
    },
}


# --- Layouts: one line as a logging library writes it.


def millis(time: datetime, mark: str = ",") -> str:
    """The time of day to the millisecond."""
    return f"{time:%H:%M:%S}{mark}{time.microsecond // 1_000:03}"


LAYOUTS: dict[str, Callable[[Line], str]] = {
    "kafka": lambda line: f"[{line[0]:%Y-%m-%d} {millis(line[0])}] INFO {line[1]} ({line[2]})",
    "kafka-number": lambda line: f"[{line[0]:%Y-%m-%d} {millis(line[0])}] INFO {line[1]} ({line[2]}:512)",
    "strimzi": lambda line: f"{line[0]:%Y-%m-%d} {millis(line[0])} INFO {line[1]} ({line[2]}) [executor-Rebalance]",
    "logback": lambda line: f"{line[0]:%Y-%m-%dT}{millis(line[0], '.')}Z  INFO 1 --- [pool-3] {line[2]} : {line[1]}",
    "connect": lambda line: f"[{line[0]:%Y-%m-%d} {millis(line[0])}] [t-1] INFO {line[2]} - {line[1]}",
    "bare": lambda line: f"{line[0]:%d %b %Y} {millis(line[0])} {line[1]}",
    "slashes": lambda line: f"{line[0]:%Y/%m/%d} {millis(line[0], '.')} I {line[1]} | {line[2]} | id={line[0]:%S}",
    "compact": lambda line: f"{line[0]:%Y%m%d-}{millis(line[0], '.')} INFO {line[1]} <{line[2]}>",
    "zoned": lambda line: f"[{line[0]:%Y-%m-%dT}{millis(line[0], '.')}+0530] INFO {line[1]} ({line[2]})",
    "clock": lambda line: f"[{millis(line[0])}] INFO {line[1]} ({line[2]})",
    "coloured": lambda line: f"[{line[0]:%Y-%m-%d} {millis(line[0])}] \x1b[32mINFO\x1b[0m {line[1]} ({line[2]})",
}


# --- Platforms: what hands lines out.


def iso(time: datetime) -> str:
    """The time in nanoseconds, as containers write it."""
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond:06}789Z"


def epoch(time: datetime) -> int:
    """Milliseconds since 1970."""
    return round(time.replace(tzinfo=UTC).timestamp() * 1_000)


PLATFORMS: dict[str, Callable[[Line, str], str]] = {
    "plain": lambda line, text: text,
    "compose": lambda line, text: f"kafka_1      | {text}",
    "compose-colour": lambda line, text: f"\x1b[36mbroker-1  |\x1b[0m {text}",
    "kubectl-prefix": lambda line, text: f"[pod/my-cluster-kafka-0/kafka] {text}",
    "kubectl-timestamps": lambda line, text: f"{iso(line[0])} {text}",
    "cri": lambda line, text: f"{iso(line[0])} stdout F {text}",
    "json-file": lambda line, text: json.dumps({"log": text + "\n", "stream": "stdout", "time": iso(line[0])}),
    "cri-json": lambda line, text: f"{iso(line[0])} stdout F {json.dumps({'msg': text, 'severity': 'info'})}",
    "journald": lambda line, text: f"Oct  6 10:00:00 kafka01 kafka-server-start.sh[1234]: {text}",
    "journald-json": lambda line, text: json.dumps(
        {"__REALTIME_TIMESTAMP": f"{epoch(line[0])}000", "MESSAGE": list(text.encode()), "_PID": "12"}
    ),
    "rfc5424": lambda line, text: f"<134>1 {iso(line[0])} kafka01 kafka 1234 - - {text}",
    "grep": lambda line, text: f"server.log:{line[0]:%S}:{text}",
    "loki": lambda line, text: '"{}","{}"'.format(iso(line[0]), text.replace('"', '""')),
    "cloudwatch": lambda line, text: f"{epoch(line[0])}\t{text}",
    "elastic": lambda line, text: json.dumps(
        {"_source": {"@timestamp": iso(line[0]), "message": text, "agent": {"version": "8.1.0"}}}
    ),
    "gelf": lambda line, text: json.dumps({"short_message": text, "timestamp": epoch(line[0]) / 1_000, "level": 6}),
}

# --- Damage.


def damage_lines(draw: random.Random, kind: str, rows: list[str]) -> list[list[str]]:
    """The files that are left of these rows."""
    half = len(rows) // 2
    match kind:
        case "reversed":
            return [rows[::-1]]
        case "doubled":
            return [rows, rows]
        case "parts":
            return [rows[half:], rows[: half + 3]]
        case "joined":
            return [rows[half:] + rows[:half]]
        case "dropped":
            return [[row for row in rows if draw.random() > 0.15]]
        case "cut":
            return [[row[: draw.choice((120, 160, 200))] for row in rows]]
        case "hole":
            return [rows[: half // 2] + rows[half:]]
        case "traces":
            return [[part for row in rows for part in (row, "\tat x.Y.z(Y.java:1)", "e: [GroupCoordinator 1]: oops")]]
    return [rows]


WHOLE = ("none", "none", "none", "reversed", "doubled", "parts", "joined", "traces")
BROKEN = ("dropped", "cut", "hole")
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "utf-8": lambda text: text.encode(),
    "bom": lambda text: text.encode("utf-8-sig"),
    "utf-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
}


def draw_shape(seed: int) -> LogShape:
    """A log by its seed."""
    draw = random.Random(seed)
    release = draw.choice(RELEASES)
    layout, platform = draw.choice(sorted(LAYOUTS)), draw.choice(sorted(PLATFORMS))
    kind, encoding = draw.choice((*WHOLE, *BROKEN)), draw.choice(("utf-8", *sorted(ENCODINGS)))
    if layout == "clock" and kind in ("parts", "joined", "doubled"):
        kind = "none"  # parts of a day cannot be put in order by the time of day
    return shape_lines(draw, tell_life(draw, release), (seed, release, layout, platform, kind, encoding))


def draw_client_shape(seed: int) -> LogShape:
    """The log of a client by its seed."""
    draw = random.Random(f"client {seed}")
    client = draw.choice(CLIENTS)
    layout, platform = draw.choice(sorted(LAYOUTS)), draw.choice(sorted(PLATFORMS))
    kind, encoding = draw.choice(("none", "none", "reversed", "traces", *BROKEN)), draw.choice(sorted(ENCODINGS))
    return shape_lines(draw, tell_member(draw, client), (seed, client, layout, platform, kind, encoding))


def shape_lines(draw: random.Random, lines: list[Line], drawn: tuple[int, str, str, str, str, str]) -> LogShape:
    """The lines in a drawn layout, as a platform hands them out, with damage."""
    seed, release, layout, platform, kind, encoding = drawn
    rows = [PLATFORMS[platform](line, LAYOUTS[layout](line)) for line in lines]
    files = tuple(ENCODINGS[encoding](join(part)) for part in damage_lines(draw, kind, rows))
    name = f"{seed}: {release}, {layout}, {platform}, {kind}, {encoding}"
    return LogShape(name, files, join(LAYOUTS["kafka"](line) for line in lines).encode(), kind not in BROKEN)


def join(rows: Iterable[str]) -> str:
    """The rows as the text of a file."""
    return "".join(f"{row}\n" for row in rows)
