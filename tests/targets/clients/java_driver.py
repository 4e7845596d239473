"""The driver of Apache Kafka's Java client, compiled, with an archive of its classes: it starts in a third of the time.

It takes a JDK 17 or newer, and Maven. The archive is made for one JDK and one path; a Java that does not fit it starts
without it.
"""

import asyncio
import os
import subprocess
from pathlib import Path

from fencepost.conformance.cli.test import make_play
from fencepost.conformance.clients.stage import ClientFacts
from tests.targets.clients.builds import EXAMPLES, find, make, run
from tests.targets.kafka.installation import find_java, install

SOURCE = EXAMPLES / "JavaDriver.java"
ASSIGNORS = "org.apache.kafka.clients.consumer."
STRATEGY = "partition.assignment.strategy="
RANGE, COOPERATIVE, STICKY, ROUND_ROBIN = (
    f"{ASSIGNORS}{name}Assignor" for name in ("Range", "CooperativeSticky", "Sticky", "RoundRobin")
)
MODES = {
    "eager": (STRATEGY + RANGE,),
    "cooperative": (STRATEGY + COOPERATIVE,),
    "all-strategies": (STRATEGY + ",".join((RANGE, ROUND_ROBIN, STICKY, COOPERATIVE)),),
    "static-eager": (STRATEGY + RANGE, "group.instance.id=i1"),
    "static-cooperative": (STRATEGY + COOPERATIVE, "group.instance.id=i1"),
}
"""What a Java client is told, for each way to be a member."""
MORE_MODES = {
    "sticky": (STRATEGY + STICKY,),
    "one-record-a-poll": (STRATEGY + RANGE, "max.poll.records=1"),
}
"""Further ones for random schedules."""
OPTIONS = ("-Xmx128m", "-Xms32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable", "-Xlog:all=off")
TRAINING_S = 120.0


def java_driver(release: str) -> tuple[str, ...]:
    """The command of the driver with the jars of a release of Apache Kafka; the settings of a mode follow it.

    Raises `MissingDependencyError`.
    """
    jars = sorted((install(release) / "jars").glob("*.jar"))

    def fill(part: Path) -> None:
        build(part, jars)

    folder = make(f"java-driver-{release}", [SOURCE], fill)
    archive = folder / "classes.jsa"
    return (find_java(), f"-XX:SharedArchiveFile={archive}", *OPTIONS, "-cp", class_path(folder, jars), "JavaDriver")


def class_path(folder: Path, jars: list[Path]) -> str:
    """The class path of the driver that was built into a folder."""
    return os.pathsep.join(map(str, [folder / "driver.jar", *jars]))


def build(part: Path, jars: list[Path]) -> None:
    """Compile the driver, and archive the classes that it loads in a scenario. Raises `MissingDependencyError`."""
    home = Path(find_java()).resolve().parent
    compiler, archiver = (find(str(home / name), "a JDK 17 or newer") for name in ("javac", "jar"))
    classes = part / "classes"
    run([compiler, "-cp", os.pathsep.join(map(str, jars)), "-d", str(classes), str(SOURCE)], part, {})
    run([archiver, "--create", "--file", str(part / "driver.jar"), "-C", str(classes), "."], part, {})
    # An archive knows its class path: it is made where the driver will be.
    final = part.with_name(part.name.removesuffix(".part"))
    final.symlink_to(part.name)
    try:
        archive_classes(part, class_path(final, jars))
    finally:
        final.unlink()


def archive_classes(part: Path, path: str) -> None:
    """Play a scenario, and archive the classes that were loaded in it; without them the driver runs as well."""
    loaded = part / "loaded"
    training = (find_java(), f"-XX:DumpLoadedClassList={loaded}", *OPTIONS, "-cp", path, "JavaDriver")
    playing, protocol = make_play(training, True, TRAINING_S)
    asyncio.run(playing.play(protocol.scenarios[0], ClientFacts()))
    archive = part / "classes.jsa"
    command = [find_java(), "-Xshare:dump", f"-XX:SharedClassListFile={loaded}", f"-XX:SharedArchiveFile={archive}"]
    subprocess.run([*command, "-cp", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
