"""The library's version, from which pyproject.toml has it."""

__version__ = "0.1.0"
