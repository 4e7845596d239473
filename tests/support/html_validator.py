"""The Nu Html Checker, which validates pages and SVG images as the W3C does; Maven fetches it once per machine."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.targets.kafka.installation import fetch_project, find_java
from tests.targets.process import MissingDependencyError

VERSION = "26.5.2"
POM = Path(__file__).with_suffix(".pom.xml")
TIMEOUT_S = 300
"""Seconds, on a busy machine."""
MISTAKEN = ("“paint-order”: Property “paint-order” doesn't exist", "pseudo-class “::details-content”")
"""What the checker complains of wrongly: they are of CSS Fill and Stroke 3, and of CSS Pseudo-Elements 4."""


def find_invalid(files: Sequence[Path]) -> list[str]:
    """What is wrong with pages or images, a line for each error or warning. Without Java or Maven the test is skipped;
    with CI=true it fails."""
    try:
        home = fetch_project(f"html-validator-{VERSION}", VERSION, POM)
    except MissingDependencyError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    checker = ["-cp", f"{home / 'jars' / '*'}", "nu.validator.client.SimpleCommandLineValidator"]
    options = ["--format", "json", "--also-check-svg"]
    command = [find_java(), "-Xss4m", "-Xmx512m", *checker, *options, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    messages = json.loads(done.stderr or done.stdout)["messages"]
    told = [
        f"{Path(each['url']).name}:{each.get('lastLine', 0)}: {each['message']}"
        for each in messages
        if each["type"] == "error" or each.get("subType") == "warning"
    ]
    return [line for line in told if not any(mistake in line for mistake in MISTAKEN)]
