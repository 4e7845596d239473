"""A plugin of pytest that gives a module another source: `pytest -p tests.support.changed_module`.

The environment names the module (FENCEPOST_CHANGED) and the file with its source (FENCEPOST_CHANGED_SOURCE). The module
has to be imported after this one.
"""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

MODULE, SOURCE = "FENCEPOST_CHANGED", "FENCEPOST_CHANGED_SOURCE"


class ChangedLoader(SourceFileLoader):
    """Loads the module as if its file had the other source."""

    def get_data(self, path: str) -> bytes:
        return Path(os.environ[SOURCE]).read_bytes()

    def path_stats(self, path: str) -> dict[str, float]:
        """Raises `OSError`: no bytecode of it is kept."""
        raise OSError

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__source__"] = self.get_data("").decode()  # a proof reads it
        super().exec_module(module)


class ChangedFinder(MetaPathFinder):
    """Finds the changed module before others do."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Found as always, with the other loader."""
        if name != os.environ.get(MODULE):
            return None
        sys.meta_path.remove(self)
        found = find_spec(name)
        if found is not None and found.origin is not None:
            found.loader = ChangedLoader(name, found.origin)
        return found


sys.meta_path.insert(0, ChangedFinder())
