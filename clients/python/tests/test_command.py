"""The command line, in processes of its own."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

from millrace_jobs import Client

from .broker import Broker

SOURCES = Path(__file__).parent.parent / "src"
SHOP = """
import os, subprocess, time
from millrace_jobs import Job, Worker

class shelf:
    worker = Worker(os.environ["MILLRACE_AMQP_URL"], concurrency=1, stop_timeout=120)

worker = shelf.worker
no_worker = 7

def say(what: str) -> None:
    os.write(1, f"{what} {os.getpid()}\\n".encode())  # in one piece: several processes write to the same log

@worker.handle("Note")
def note(job: Job) -> None:
    say("began")
    if job.args[0]:
        time.sleep(job.args[0])
    say("note")

@worker.handle("Hold")
def hold(job: Job) -> None:
    say("began")
    while not (job.cancelled or os.path.exists("release")):
        time.sleep(0.02)
    say("cancelled" if job.cancelled else "note")

@worker.handle("Read")
def read(job: Job) -> None:
    subprocess.run(["cat"], check=True)
    say("note")
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

    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(SOURCES), "MILLRACE_AMQP_URL": self.url}

    def start(self, *args: str) -> subprocess.Popen[str]:
        log = (self.folder / "log").open("w")
        self.addCleanup(log.close)
        command = [sys.executable, "-m", "millrace_jobs", *args]
        process = subprocess.Popen(command, cwd=self.folder, env=self.env(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True)
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
        return [int(pid) for pid in re.findall(r"worker started.* identity=[^:]+:(\d+)", self.log())]

    def said(self, what: str) -> set[int]:
        """List the processes in which a handler has reported this."""
        return {int(line.split()[1]) for line in self.log().splitlines() if line.startswith(f"{what} ")}

    def gone(self, pid: int) -> bool:
        """Return whether a process has ended, also in a container, where nothing reaps orphans."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return True

    def two(self) -> tuple[subprocess.Popen[str], int, int]:
        """Start the command with two processes. Return it and both."""
        process = self.start("worker", "shop:worker", "--processes", "2")
        self.eventually(lambda: len(self.workers()) == 2, "both have started")
        first, second = self.workers()
        return process, first, second

    def holding(self) -> tuple[subprocess.Popen[str], int, int]:
        """Start the command with two processes. Return it, the busy one and the idle one.

        The busy one runs a job until there is a file ``release``.
        """
        process, *both = self.two()
        with self.client() as client:
            client.enqueue("Hold")
        self.eventually(lambda: len(self.said("began")) == 1, "one of them runs the job")
        (busy,) = self.said("began")
        (idle,) = set(both) - {busy}
        return process, busy, idle

    def send_control(self, op: str, identity: str) -> None:
        """Send workers a command, as the web UI does."""
        with broker.channel() as channel:
            channel.basic_publish("jobs.control", "", json.dumps({"op": op, "identity": identity}).encode())

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
            self.eventually(lambda: bool(self.said("began")), "the job runs")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, self.wait(process))
            self.assertEqual({process.pid}, self.said("note"), "the job that ran has ended")
            self.assertIn("INFO:millrace:millrace: worker stopped", self.log())

    def test_several_processes(self) -> None:
        process, first, second = self.two()
        with self.client() as client:

            def both_work() -> bool:
                client.enqueue("Note", [0])  # repeated, because one may begin to consume much later
                return len(self.said("note")) == 2

            self.eventually(both_work, "both work")
        os.kill(first, signal.SIGKILL)
        self.eventually(lambda: len(self.workers()) == 3, "one that was killed is replaced")
        self.assertIn(f"process {first} was killed by SIGKILL, and is replaced", self.log())
        third = self.workers()[2]
        process.send_signal(signal.SIGTSTP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.wait(process))
        self.assertTrue(self.gone(second) and self.gone(third), "no process is left")
        self.assertEqual(2, self.log().count("worker stopped"))

    def test_a_stop_that_reaches_every_process_counts_once(self) -> None:
        process, busy, idle = self.holding()
        os.kill(busy, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        self.eventually(lambda: self.gone(idle), "the command has passed the signal on")
        self.write("release", "")
        self.assertEqual(0, self.wait(process))
        self.assertEqual(({busy}, set()), (self.said("note"), self.said("cancelled")))

    def test_a_second_stop_waits_for_no_job(self) -> None:
        process, _, idle = self.holding()
        process.send_signal(signal.SIGTERM)
        self.eventually(lambda: self.gone(idle), "the command has passed the signal on")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.wait(process))
        self.assertEqual(set(), self.said("note"))

    def test_one_that_is_stopped_leaves_the_others(self) -> None:
        process, first, second = self.two()
        self.send_control("stop", f"{socket.gethostname()}:{first}")
        self.eventually(lambda: f"process {first} has ended, and is not replaced" in self.log(), "the first one has ended")
        with self.client() as client:
            client.enqueue("Note", [0])
        self.eventually(lambda: self.said("note") == {second}, "the other one works")
        self.send_control("stop", "*")
        self.assertEqual(0, self.wait(process))
        self.assertEqual([first, second], self.workers(), "none was replaced")

    def test_what_handlers_start_has_nothing_to_read(self) -> None:
        process, _, _ = self.two()
        with self.client() as client:
            client.enqueue("Read")
        self.eventually(lambda: len(self.said("note")) == 1, "the command has ended")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.wait(process))

    def test_lines_are_written_in_one_piece(self) -> None:
        # Each write is a message.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            ours.settimeout(30)
            command = [sys.executable, "-u", "-m", "millrace_jobs", "worker", "shop"]
            subprocess.run(command, cwd=self.folder, env=self.env(), stderr=theirs.fileno())
            self.assertRegex(ours.recv(1 << 16).decode(), r"\Apython -m millrace_jobs: 'shop' .*\n\Z")

    def test_processes_end_with_the_one_that_started_them(self) -> None:
        process, _, _ = self.two()
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
