"""`python -m tests.acceptance.registry_reports [NAME...]`: make the reports of the registry anew, all or those named.

Each is a whole run: in one process (bundled, push, region), on a target of tests/targets, which the profile beside the
report starts (kafka4, kafka3, kafka34, kafka28, kfake, mock), or on a client by its driver in docs/examples/clients
(java4, java3, kafka-python, aiokafka, librdkafka, franz-go, kafkajs). A run takes one to four minutes, that on the mock
a quarter of an hour.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from fencepost import __version__
from fencepost.conformance.reports.registry import ABOUT_FILE, PROFILE_FILE, REPORT_FILE
from fencepost.conformance.specification import specification_named
from tests.acceptance.runs import command_environment
from tests.targets.clients.builds import FRANZ_GO, KAFKAJS, build_go, install_kafkajs
from tests.targets.kafka.installation import VERSIONS, install

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "docs" / "registry"
PROFILES = ROOT / "tests" / "targets"
TO_PROFILES = "../../../../../tests/targets/"
"""The way from the folder of an entry to the commands of the profiles."""
POSSIBLE_CODES = (0, 1, 3)
"""Exit codes of a run that was possible."""
KAFKA = {
    "name": "Apache Kafka",
    "url": "https://kafka.apache.org",
    "language": "Java and Scala",
    "license": "Apache-2.0",
    "notes": "The reference: up to 3.9 the older group coordinator, in 4.x the newer one.",
}
KFAKE = {
    "name": "kfake",
    "url": "https://github.com/twmb/franz-go",
    "language": "Go",
    "license": "BSD-3-Clause",
    "notes": "A fake cluster in memory for the tests of clients.",
}
MOCK = {
    "name": "librdkafka mock cluster",
    "url": "https://github.com/confluentinc/librdkafka",
    "language": "C",
    "license": "BSD-2-Clause",
    "notes": "A mock for the tests of librdkafka. It imitates a group coordinator loosely.",
}
BUNDLED = {
    "name": "Fencepost bundled coordinator",
    "language": "Python",
    "license": "Apache-2.0",
    "notes": "The coordinator that comes with Fencepost, in the same process.",
}


PUSH = {
    "name": "Fencepost bundled push coordinator",
    "language": "Python",
    "license": "Apache-2.0",
    "notes": "The coordinator of the repaired draft that comes with Fencepost, in the same process.",
}
REGION = {
    "name": "Fencepost bundled region",
    "language": "Python",
    "license": "Apache-2.0",
    "notes": "The operators of a consistent region that come with Fencepost, in the same process.",
}
JAVA_CLIENT = {
    "name": "Apache Kafka Java client",
    "url": "https://kafka.apache.org",
    "language": "Java",
    "license": "Apache-2.0",
    "notes": "The reference.",
}
KAFKA_PYTHON = {
    "name": "kafka-python",
    "url": "https://github.com/dpkp/kafka-python",
    "language": "Python",
    "license": "Apache-2.0",
}
AIOKAFKA = {
    "name": "aiokafka",
    "url": "https://github.com/aio-libs/aiokafka",
    "language": "Python",
    "license": "Apache-2.0",
}
LIBRDKAFKA = {
    "name": "librdkafka",
    "url": "https://github.com/confluentinc/librdkafka",
    "language": "C",
    "license": "BSD-2-Clause",
    "notes": "Driven by confluent-kafka for Python.",
}
FRANZ_GO_CLIENT = {
    "name": "franz-go",
    "url": "https://github.com/twmb/franz-go",
    "language": "Go",
    "license": "BSD-3-Clause",
}
KAFKAJS_CLIENT = {
    "name": "kafkajs",
    "url": "https://github.com/tulios/kafkajs",
    "language": "JavaScript",
    "license": "MIT",
}
DRIVERS = "docs/examples/clients"
ABOUT_KEYS = ("name", "url", "language", "license")
"""What a profile says of a target too."""


@dataclass(frozen=True, slots=True)
class RegistryTarget:
    """A target of the registry: the folder of its implementation, its version, and what it is; of a client also the
    command of its driver, and what makes the variables that the driver needs. One in the process of the run is
    `bundled`, its address. The run has these `options`."""

    folder: str
    version: str
    about: dict[str, str]
    driver: tuple[str, ...] = ()
    environment: Callable[[], Mapping[str, str]] = dict
    bundled: str = ""
    subject: str = "coordinator"
    options: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        """The folder of its entry."""
        shelf = specification_named("client" if self.driver else self.subject).shelf
        return REGISTRY / shelf / self.folder / self.version


def kfake_version() -> str:
    """The release of kfake that the tests pin, without its commit."""
    found = re.search(r"pkg/kfake v(\S+)-[0-9a-f]{12}", (PROFILES / "kfake" / "go.mod").read_text())
    assert found is not None
    return found[1]


def mock_version() -> str:
    """The release of librdkafka in the installed wheel."""
    from confluent_kafka import libversion

    return str(libversion()[0])


def franz_go_version() -> str:
    """The release of franz-go that its driver pins."""
    found = re.search(r"twmb/franz-go v(\S+)", (FRANZ_GO / "go.mod").read_text())
    assert found is not None
    return found[1]


def kafkajs_version() -> str:
    """The release of kafkajs that the tests pin."""
    return str(json.loads((KAFKAJS / "package.json").read_text())["dependencies"]["kafkajs"])


def with_jars(key: str) -> Mapping[str, str]:
    """The variables of a driver that needs the jars of a release of Apache Kafka."""
    return {"CLASSPATH": f"{install(VERSIONS[key])}/jars/*"}


def with_franz_go() -> Mapping[str, str]:
    """The variables by which the program with franz-go in it is found."""
    return {"PATH": os.pathsep.join([str(build_go().parent), os.environ["PATH"]])}


def with_kafkajs() -> Mapping[str, str]:
    """The variables of a driver that needs kafkajs."""
    return {"NODE_PATH": str(install_kafkajs())}


def registry_targets() -> dict[str, RegistryTarget]:
    """All targets by the names of their profiles."""
    kafkas = {"kafka4": "4", "kafka3": "3", "kafka34": "3.4", "kafka28": "2.8"}
    java = ("java", f"{DRIVERS}/JavaDriver.java")
    clients = {
        "java4": RegistryTarget("apache-kafka-java", VERSIONS["4"], JAVA_CLIENT, java, partial(with_jars, "4")),
        "java3": RegistryTarget("apache-kafka-java", VERSIONS["3"], JAVA_CLIENT, java, partial(with_jars, "3")),
        "kafka-python": python_client("kafka-python", version("kafka-python"), KAFKA_PYTHON, "kafka_python_driver.py"),
        "aiokafka": python_client("aiokafka", version("aiokafka"), AIOKAFKA, "aiokafka_driver.py"),
        "librdkafka": python_client("librdkafka", mock_version(), LIBRDKAFKA, "confluent_driver.py"),
        "franz-go": RegistryTarget("franz-go", franz_go_version(), FRANZ_GO_CLIENT, ("driver", "range"), with_franz_go),
        "kafkajs": RegistryTarget(
            "kafkajs", kafkajs_version(), KAFKAJS_CLIENT, ("node", f"{DRIVERS}/kafkajs_driver.js"), with_kafkajs
        ),
    }
    return {
        "bundled": RegistryTarget("fencepost-bundled", __version__, BUNDLED, bundled="bundled"),
        "push": RegistryTarget(
            "fencepost-bundled", __version__, PUSH, bundled="push://bundled", subject="push coordinator"
        ),
        "region": RegistryTarget(
            "fencepost-bundled", __version__, REGION, bundled="region://bundled", subject="consistent region"
        ),
        **{name: RegistryTarget("apache-kafka", VERSIONS[key], KAFKA) for name, key in kafkas.items()},
        "kfake": RegistryTarget("kfake", kfake_version(), KFAKE),
        # It crashes at many a JoinGroup: with random schedules it would go down more often than a run bears.
        "mock": RegistryTarget("librdkafka-mock", mock_version(), MOCK, options=("--schedules", "0")),
        **clients,
    }


def python_client(folder: str, release: str, about: dict[str, str], driver: str) -> RegistryTarget:
    """A client that a driver in Python drives."""
    return RegistryTarget(folder, release, about, ("python", f"{DRIVERS}/{driver}"))


def make_report(name: str, target: RegistryTarget) -> None:
    """Run the kit on a target and put the report into the registry. Raises `RuntimeError` if that was not possible."""
    folder = target.place
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    about = "".join(f'{key} = "{value}"\n' for key, value in target.about.items())
    if not (folder.parent / ABOUT_FILE).exists():
        (folder.parent / ABOUT_FILE).write_text(about)
    profile = folder / PROFILE_FILE
    if not target.bundled:
        profile.write_text(profile_text(name, target))
    kept = str(profile.relative_to(ROOT))
    if target.driver:
        words = ["test-client", "--driven", "--profile", kept]
    else:
        words = ["test", target.bundled] if target.bundled else ["test", "--profile", kept]
    with tempfile.TemporaryDirectory() as run_folder:
        environment = command_environment(Path(run_folder)) | dict(target.environment())
        words += [*target.options, "-q"]
        words += ["--json", str(folder / REPORT_FILE), *(["--", *target.driver] if target.driver else [])]
        done = subprocess.run(["fencepost", *words], cwd=ROOT, env=environment)
        if not target.bundled and not target.driver:
            kill_target(name, environment)
    if done.returncode not in POSSIBLE_CODES:
        raise RuntimeError(f"{name}: exit code {done.returncode}")


def profile_text(name: str, target: RegistryTarget) -> str:
    """The profile of a target for its folder in the registry."""
    about = ["[about]", f'version = "{target.version}"', *(f'{key} = "{target.about[key]}"' for key in ABOUT_KEYS), ""]
    if target.driver:
        return "\n".join(about)
    text = (PROFILES / f"{name}.toml").read_text()
    text = re.sub(r'^(start|kill) = "', rf'\1 = "{TO_PROFILES}', text, flags=re.MULTILINE)
    return "\n".join([text, *about])


def kill_target(name: str, environment: dict[str, str]) -> None:
    """End the target of a profile."""
    found = re.search(r'^kill = "(.*)"', (PROFILES / f"{name}.toml").read_text(), re.MULTILINE)
    assert found is not None
    subprocess.run(found[1].split(), cwd=PROFILES, env=environment, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str]) -> int:
    """Make the reports; the exit code is 2 for an unknown name."""
    targets = registry_targets()
    unknown = sorted(set(arguments) - set(targets))
    if unknown:
        print(f"no target is called {unknown[0]!r}; there are {', '.join(targets)}", file=sys.stderr)
        return 2
    os.chdir(ROOT)
    for name in arguments or targets:
        print(name, flush=True)
        make_report(name, targets[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
