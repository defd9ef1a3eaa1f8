"""The command line, in processes of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

from millrace_jobs import Client, NewJob

from .broker import Broker

SOURCES = Path(__file__).parent.parent / "src"
SHOP = """
import os, time
from millrace_jobs import Job, Worker

class shelf:
    worker = Worker(os.environ["MILLRACE_AMQP_URL"], concurrency=1)

worker = shelf.worker
no_worker = 7

@worker.handle("Note")
def note(job: Job) -> None:
    if job.args[0]:
        time.sleep(job.args[0])
    os.write(1, b"note %d\\n" % os.getpid())  # in one piece: several processes write to the same log
"""
broker: Broker


def setUpModule() -> None:
    global broker
    broker = Broker()


def tearDownModule() -> None:
    broker.stop()


class Command(unittest.TestCase):
    def setUp(self) -> None:
        broker.topology("default")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.write("shop.py", SHOP)
        self.url = broker.url

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def start(self, *args: str) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(SOURCES), "MILLRACE_AMQP_URL": self.url}
        log = (self.folder / "log").open("w")
        self.addCleanup(log.close)
        command = [sys.executable, "-m", "millrace_jobs", *args]
        process = subprocess.Popen(command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 90
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"not within 90 s: {what}\n{self.log()}")
            time.sleep(0.02)

    def wait(self, process: subprocess.Popen[str]) -> int:
        self.eventually(lambda: process.poll() is not None, "it ends")
        assert process.returncode is not None
        return process.returncode

    def run_to_its_end(self, *args: str) -> tuple[int, str]:
        process = self.start(*args)
        return self.wait(process), self.log()

    def workers(self) -> list[int]:
        """List the processes that have started as a worker."""
        return [int(line.split("identity=")[1].split(":")[1]) for line in self.log().splitlines() if "worker started" in line]

    def noted(self) -> set[int]:
        return {int(line.split()[1]) for line in self.log().splitlines() if line.startswith("note ")}

    def gone(self, pid: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return False
        return True

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        with Client(broker.url) as client:
            yield client

    def test_what_is_wrong_is_said(self) -> None:
        self.write("broken.py", "import a_module_that_is_not_there\n")
        self.write("runs.py", SHOP + "\nworker.stop()\nworker.run()\n")
        for name, says in {
            "shop": "'shop' does not name a worker: write module:worker, for example shop:worker\n",
            "shop.py:worker": "or in Python's path; write shop:worker\n",
            "nothing:worker": f"there is no module nothing in {self.folder.resolve()} or in Python's path\n",
            "shop.deeper:worker": "there is no module shop.deeper in ",
            "shop:nothing": "shop has no nothing: it has shop:worker\n",
            "shop:no_worker": "shop:no_worker is not a Worker but of type int: it has shop:worker\n",
            "os:path": "os:path is not a Worker but of type module, and no other Worker in it\n",
            "runs:worker": "the worker has run already: call its run() only below",
        }.items():
            with self.subTest(name):
                code, log = self.run_to_its_end("worker", name)
                self.assertEqual(1, code)
                self.assertIn(says, log)
                self.assertNotIn("Traceback", log)
        code, log = self.run_to_its_end("worker", "broken:worker")
        self.assertEqual(1, code)
        self.assertIn("No module named 'a_module_that_is_not_there'", log)
        self.assertIn('broken.py", line 1', log)
        for wrong in (["worker"], [], ["nonsense"], ["worker", "shop:worker", "--processes", "none"]):
            self.assertEqual(2, self.run_to_its_end(*wrong)[0], wrong)

    def test_a_broker_that_turns_it_away(self) -> None:
        self.url = broker.url.replace("guest:guest", "guest:wrong-password")
        for more in ([], ["--processes", "2"]):
            code, log = self.run_to_its_end("worker", "shop:worker", *more)
            self.assertEqual(1, code)
            self.assertIn("python -m millrace_jobs: the broker turns us away", log)
            self.assertNotIn("Traceback", log)
            self.assertNotIn("wrong-password", log)

    def test_it_works_until_it_is_stopped(self) -> None:
        for name in ("shop:worker", "shop:shelf.worker"):
            process = self.start("worker", name)
            self.eventually(lambda: len(self.workers()) == 1, "it has started")
            with self.client() as client:
                client.enqueue("Note", [1])
            self.eventually(lambda: broker.count("queue.default") == 0, "the job runs")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, self.wait(process))
            self.assertEqual({process.pid}, self.noted(), "the job that ran has ended")
            self.assertIn("INFO:millrace:millrace: worker stopped", self.log())

    def test_several_processes(self) -> None:
        process = self.start("worker", "shop:worker", "--processes", "2")
        self.eventually(lambda: len(self.workers()) == 2, "both have started")
        first, second = self.workers()
        with self.client() as client:
            client.enqueue_bulk([NewJob("Note", [0.1]) for _ in range(10)])
        self.eventually(lambda: len(self.noted()) == 2, "both work")
        os.kill(first, signal.SIGKILL)
        self.eventually(lambda: len(self.workers()) == 3, "one that was killed is replaced")
        self.assertIn(f"process {first} was killed by SIGKILL, and is replaced", self.log())
        third = self.workers()[2]
        process.send_signal(signal.SIGTSTP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.wait(process))
        self.assertTrue(self.gone(second) and self.gone(third), "no process is left")
        self.assertEqual(2, self.log().count("worker stopped"))

    def test_processes_end_with_the_one_that_started_them(self) -> None:
        process = self.start("worker", "shop:worker", "--processes", "2")
        self.eventually(lambda: len(self.workers()) == 2, "both have started")
        process.kill()
        process.wait()
        self.eventually(lambda: all(self.gone(pid) for pid in self.workers()), "they end too")
        self.assertEqual(2, self.log().count("worker stopped"), "in order")

    def test_one_that_ends_by_itself_stops_the_others(self) -> None:
        self.write("ends.py", SHOP + '\nworker.handle("End", lambda job: os._exit(3))\n')
        process = self.start("worker", "ends:worker", "--processes", "2")
        self.eventually(lambda: len(self.workers()) == 2, "both have started")
        with self.client() as client:
            client.enqueue("End")
        self.assertNotEqual(0, self.wait(process))
        self.assertIn("has ended with exit code 3: the others are stopped", self.log())
        self.assertTrue(all(self.gone(pid) for pid in self.workers()))
