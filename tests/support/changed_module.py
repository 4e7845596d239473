"""A plugin of pytest that changes a module: `pytest -p tests.support.changed_module`.

The environment names the module (FENCEPOST_CHANGED) and the file with its pickled syntax tree (FENCEPOST_CHANGED_TREE),
whose lines are those of the shipped file. The module has to be imported after this one.
"""

import ast
import os
import pickle
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType

MODULE, TREE = "FENCEPOST_CHANGED", "FENCEPOST_CHANGED_TREE"


class ChangedLoader(SourceFileLoader):
    """Loads the module from the tree in place of its file."""

    tree: ast.Module

    def get_code(self, fullname: str) -> CodeType:
        """The code of the tree; no bytecode of it is kept."""
        self.tree = pickle.loads(Path(os.environ[TREE]).read_bytes())
        return compile(self.tree, self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        """Run it; a proof reads its source."""
        self.get_code(module.__name__)
        module.__dict__["__source__"] = ast.unparse(self.tree)
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
