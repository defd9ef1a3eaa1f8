"""The programs in the package's README."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def program(file: str) -> str:
    """Return the program of a block that names its file."""
    found = re.search(rf"```python file={re.escape(file)}\n(.*?)```", README.read_text(), re.DOTALL)
    assert found, file
    return found[1]
