"""The vectors that all clients share."""

import base64
import json
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).resolve().parents[2] / "conformance" / "vectors"


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DIRECTORY / f"{name}.json").read_text())
    assert found
    return found


def body(case: dict[str, Any]) -> bytes:
    if "body_base64" in case:
        return base64.b64decode(case["body_base64"])
    return str(case["body"]).encode()
