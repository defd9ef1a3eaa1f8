"""The README's program for FastAPI, with a real broker."""

import asyncio
import importlib.util
import json
import unittest
from typing import Any

from millrace_jobs import Closed

from . import readme
from .broker import Broker


@unittest.skipUnless(importlib.util.find_spec("fastapi"), "FastAPI is in .cache/python only")
class FastAPI(unittest.TestCase):
    def test_the_readme(self) -> None:
        from fastapi.testclient import TestClient

        broker = Broker()
        self.addCleanup(broker.stop)
        broker.topology("default")
        names: dict[str, Any] = {}
        exec(readme.program("fastapi_app.py").replace("AsyncClient(", f"AsyncClient({broker.url!r}, "), names)
        with TestClient(names["app"]) as web:
            answers = [web.post(f"/orders/{n}") for n in range(3)]
        self.assertEqual([202] * 3, [answer.status_code for answer in answers])
        jobs = [json.loads(broker.take("queue.default")[1]) for _ in answers]
        self.assertEqual([[0], [1], [2]], [job["args"] for job in jobs])
        self.assertEqual([answer.json()["jid"] for answer in answers], [job["jid"] for job in jobs])
        with self.assertRaises(Closed):  # it was closed with the application
            asyncio.run(names["app"].state.jobs.enqueue("A"))
