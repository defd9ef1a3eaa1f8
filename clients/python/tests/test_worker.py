import json
import threading
import time
import unittest
from typing import Any

from millrace_jobs import Job, Lane, Worker
from millrace_jobs._begins import MEMORY, Begins, Key
from millrace_jobs._control import obey
from millrace_jobs._heartbeat import describe
from millrace_jobs._lane import Arrival, Hand, Pool

URL = "amqp://guest:guest@127.0.0.1:1/"


class Configuration(unittest.TestCase):
    def test_what_makes_no_sense(self) -> None:
        bad: dict[str, dict[str, Any]] = {
            "a text as queues": {"queues": "default"},
            "twice": {"queues": ["a", "a"]},
            "weight": {"queues": {"a": 0}},
            "name": {"queues": ["a\n"]},
            "concurrency": {"concurrency": 0},
            "lanes of one name": {"lanes": [Lane("a", ["x"]), Lane("a", ["y"])]},
            "tag": {"tag": "a:b"},
        }
        for name, options in bad.items():
            with self.subTest(name), self.assertRaises(ValueError):
                Worker(URL, **options)
        with self.assertRaises(ValueError):
            Worker("redis://x")
        with self.assertRaises(ValueError):
            Worker(URL).on("nonsense", print)

    def test_lanes(self) -> None:
        self.assertEqual([["default"]], [p.queues for p in Worker(URL)._pools])
        worker = Worker(URL, queues={"a": 3, "b": 1}, concurrency=2, lanes=[Lane("quick", ["c"], 4)])
        self.assertEqual([4, 4], [p.prefetch for p in worker._pools], "twice the threads where queues are chosen from")


class PublicNames(unittest.TestCase):
    def test_what_is_no_api_has_an_underscore(self) -> None:
        methods = {"handle", "use", "on", "quiet", "stop", "run"}
        settings = {"hosts", "identity", "tag", "labels", "stop_timeout", "max_deaths", "version", "declare", "heartbeat", "log"}
        self.assertEqual(methods | settings, {name for name in dir(Worker(URL)) if not name.startswith("_")})


class Registering(unittest.TestCase):
    def test_a_class_has_one_handler(self) -> None:
        worker = Worker(URL)
        worker.handle("A", print)
        with self.assertRaisesRegex(ValueError, "handler of A is registered already: <built-in function print>"):
            worker.handle("A", repr)
        self.assertIs(print, worker._handlers["A"].call)

    def test_nothing_is_registered_after_the_start(self) -> None:
        worker = Worker(URL)
        thread = threading.Thread(target=worker.run)
        thread.start()
        deadline = time.monotonic() + 30
        while not worker._running and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            with self.assertRaisesRegex(RuntimeError, "handler of A is registered too late"):
                worker.handle("A", print)
            with self.assertRaisesRegex(RuntimeError, "middleware is added too late"):
                worker.use(lambda job, call_next: call_next())
            with self.assertRaisesRegex(RuntimeError, "hook quiet is added too late"):
                worker.on("quiet", print)
            self.assertEqual({}, worker._handlers)
        finally:
            worker.stop()
            thread.join(30)


class Hands(unittest.TestCase):
    def hand(self, queues: Any) -> Hand:
        hand = Hand(Pool(Lane("x", queues)))
        for tag, (queue, priority) in enumerate([(1, 0), (0, 0), (1, 5), (1, 5), (0, 9)]):
            hand.put(queue, Arrival(tag, False, None, b"", 0, priority))
        return hand

    def test_strict(self) -> None:
        hand = self.hand(["first", "second"])
        self.assertEqual([4, 1, 2, 3, 0], [hand.take()[1].tag for _ in range(5)])

    def test_weighted(self) -> None:
        firsts = sum(self.hand({"often": 9, "rarely": 1}).take()[0] == 0 for _ in range(2000))
        self.assertTrue(1600 < firsts < 1980, firsts)

    def test_empty(self) -> None:
        hand = self.hand(["first", "second"])
        self.assertEqual([2, 3, 0], [a.tag for a in hand.empty(1)])
        self.assertEqual(2, hand.count)


class Running(unittest.TestCase):
    def test_stopped_without_a_broker_it_ends(self) -> None:
        said: list[str] = []
        worker = Worker(URL)
        worker.on("quiet", lambda: said.append("quiet"))
        worker.on("shutdown", lambda: said.append("shutdown"))
        thread = threading.Thread(target=worker.run)
        thread.start()
        worker.stop()
        thread.join(30)
        self.assertFalse(thread.is_alive())
        self.assertEqual(["quiet", "shutdown"], said)
        with self.assertRaises(RuntimeError):
            worker.run()

    def test_job_waits_until_it_is_to_end(self) -> None:
        job = Job(b'{"class":"A"}', "q")
        self.assertFalse(job.wait(0.001))
        threading.Timer(0.01, lambda: job._signal(stopping=True)).start()
        self.assertTrue(job.wait(60))
        self.assertEqual((True, False), (job.stopping, job.cancelled))
        job._signal(end="cancelled")
        self.assertTrue(job.cancelled)

    def test_commands(self) -> None:
        worker = Worker(URL, tag="t")
        for body in (b"no JSON", b"[]", b'{"op":"pause","identity":"else","queue":"q"}', b'{"op":"nonsense","identity":"*"}'):
            obey(worker, body)
        self.assertEqual(set(), worker._paused)

    def test_heartbeat(self) -> None:
        worker = Worker(URL, queues={"a": 3}, lanes=[Lane("b", ["b", "a"], 2)], labels={"zone": "x"})
        beat = json.loads(json.dumps(describe(worker, 7)))
        self.assertEqual((7, ["a", "b"], {"a": 3}), (beat["concurrency"], beat["queues"], beat["weights"]))
        self.assertEqual(("running", 7), (beat["state"], beat["rtt_us"]))
        self.assertGreater(beat["rss_kb"], 1000)


class Memory(unittest.TestCase):
    def test_the_dead_are_forgotten(self) -> None:
        begins = Begins()
        for record in (
            {"type": "opened", "process": "a", "queue": "x", "queues": ["q"], "at": 1.0},
            {"type": "died", "process": "a", "at": 2.0},
            {"type": "begun", "process": "a", "jid": "j", "body": "b", "blames": "", "at": 2.0},
        ):
            begins.apply(json.dumps(record).encode())
        self.assertEqual(1, begins.deaths(Key("j", "b"), "me", set()))
        for _ in range(1000):
            begins.apply(json.dumps({"type": "else", "process": "b", "at": MEMORY + 3}).encode())
        self.assertEqual(({}, {}), (begins.processes, begins.suspects))
        self.assertIsNone(begins.apply(b"[" * 100_000))
