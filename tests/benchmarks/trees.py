"""Running a script with the code of any tree, this one or an old one."""

import json
import os
import subprocess
import sys
from pathlib import Path


def run_script(tree: Path, script: Path, *arguments: object) -> dict[str, float]:
    """The figures that a script prints as JSON, run in a process of its own with the code of a tree."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tree / ".src"), str(tree))), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", str(script), *map(str, arguments)]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
