import ast
import unittest
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import millrace_jobs

PACKAGE = Path(millrace_jobs.__file__).parent
MODULES = {path.stem: path for path in PACKAGE.glob("*.py")}


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a module imports, also only for types."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = f"{PACKAGE.name}.{node.module or ''}".rstrip(".") if node.level else node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *rest = name.split(".")
            if package == PACKAGE.name:
                yield rest[0] if rest and rest[0] in MODULES else "__init__"


class Imports(unittest.TestCase):
    def test_no_modules_import_each_other_in_a_circle(self) -> None:
        imports = {name: set(imported(path)) for name, path in MODULES.items()}
        self.assertLessEqual({"_wire", "errors"}, imports["_ledger"])
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as e:
            self.fail(" imports ".join(reversed(e.args[1])))
