import json
import os
import socket
import time
import unittest
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from millrace_jobs import Discard, HandBack, Kill, Lane, RetryIn, Timeout, UnknownClass, Worker
from millrace_jobs._begins import Begins, Key
from millrace_jobs._control import obey
from millrace_jobs._heartbeat import describe
from millrace_jobs._hosts import split_hosts, try_order
from millrace_jobs._metrics import metric
from millrace_jobs._outcome import SUCCEEDED, Outcome, Said, backoff, expire, judge, poisoned
from millrace_jobs._record import _HERE, retry_record
from millrace_jobs._wire import check_queue, trace_headers
from millrace_jobs.job import Job

from . import vectors


def without_job(record: bytes, job: str) -> dict[str, Any]:
    """Return the rest of a record that has exactly these bytes as its job."""
    tail = b',"job":' + job.encode() + b"}"
    assert record.endswith(tail), (record, job)
    json.loads(record)
    rest: dict[str, Any] = json.loads(record.removesuffix(tail) + b"}")
    return rest


def wanted(case: dict[str, Any], job: Job) -> Outcome:
    kind, now = case["outcome"], case["now"]
    stopping = kind.get("stopping", False)
    failure = Said(kind.get("error_class", ""), kind.get("error_message", ""))
    failure.backtrace = kind.get("backtrace", [])  # type: ignore[attr-defined]
    match kind["kind"]:
        case "success":
            return SUCCEEDED
        case "expired":
            assert job._expires_at is not None
            assert job._expires_at < now
            return expire(job, now)
        case "poison":
            return poisoned(job, kind["deaths"], now)
    errors: dict[str, Callable[[], BaseException]] = {
        "fail": lambda: failure,
        "retry_in": lambda: RetryIn(kind["seconds"], failure),
        "discard": lambda: Discard("why not"),
        "kill": lambda: Kill(kind["message"]),
        "hand_back": HandBack,
        "unknown_class": lambda: UnknownClass(job.class_),
        "timeout": lambda: Timeout(kind["seconds"]),
    }
    return judge(job, errors[kind["kind"]](), now, stopping=stopping)


def at_work(**settings: Any) -> Worker:
    """Make a worker that follows commands, without a broker."""
    lanes = [Lane(**lane) for lane in settings.pop("lanes", ())]
    return Worker("amqp://localhost", lanes=lanes, **settings)


def command(message: str, worker: Worker) -> bytes:
    return message.replace("IDENTITY", worker.identity).encode()


class Vectors(unittest.TestCase):
    maxDiff = 2000

    def test_control(self) -> None:
        for case in vectors.cases("control"):
            with self.subTest(case["name"]):
                worker = at_work(queues=["a", "b"])
                for message in case["messages"]:
                    obey(worker, command(message, worker))
                self.assertEqual((case["state"], set(case["paused"])), (worker._state, worker._paused))

    def test_heartbeat(self) -> None:
        for case in vectors.cases("heartbeat"):
            with self.subTest(case["name"]):
                worker = at_work(**case["worker"])
                for message in case["messages"]:
                    obey(worker, command(message, worker))
                beat = json.loads(json.dumps(describe(worker, case["rtt_us"] or 0)))
                own = {name: beat.pop(name) for name in ("identity", "hostname", "pid", "beat", "rss_kb", "started_at")}
                self.assertEqual(case["heartbeat"], beat)
                self.assertEqual((socket.gethostname(), os.getpid()), (own["hostname"], own["pid"]))
                identity = case["identity"].replace("HOSTNAME", own["hostname"]).replace("PID", str(own["pid"]))
                self.assertEqual(identity, own["identity"])
                self.assertLessEqual(own["started_at"], own["beat"])
                self.assertIsInstance(own["rss_kb"], int)

    def test_metrics(self) -> None:
        for case in vectors.cases("metrics"):
            with self.subTest(case["name"]):
                delivery = case["delivery"]
                job = Job(delivery["body"].encode(), delivery["queue"], None, delivery["message_id"], delivery["timestamp"])
                self.assertEqual(case["metric"], metric(job, SUCCEEDED, "me", case["ended"], case["took"]))

    def test_hosts(self) -> None:
        for case in vectors.cases("hosts"):
            with self.subTest(case["name"]):
                if "error" not in case:
                    self.assertEqual(case["hosts"], split_hosts(case["urls"]))
                    continue
                with self.assertRaises(ValueError) as caught:
                    split_hosts(case["urls"])
                self.assertEqual(case["error"], str(caught.exception))

    def test_host_order(self) -> None:
        for case in vectors.cases("host_order"):
            with self.subTest(case["name"]):
                orders = [try_order(case["hosts"], case["good"] or "", case["lost"]) for _ in range(200)]
                for order in orders:
                    for group in case["order"]:
                        self.assertCountEqual(group, order[: len(group)])
                        order = order[len(group) :]
                    self.assertEqual([], order)
                self.assertEqual(set(case["order"][0]), {order[0] for order in orders if order}, "each comes first at times")

    def test_backoff(self) -> None:
        for case in vectors.cases("backoff"):
            with self.subTest(case["name"]):
                self.assertEqual(case["min"], backoff(case["retry_count"], lambda least, _: least))
                self.assertEqual(case["max"], backoff(case["retry_count"], lambda _, most: most))

    def test_splice(self) -> None:
        for case in vectors.cases("splice"):
            with self.subTest(case["name"]):
                job = Job(vectors.body(case), case["queue"])
                without_job(retry_record(job, ValueError("x"), 1.0, 2.0), case["job"])

    def test_undecodable(self) -> None:
        for case in vectors.cases("undecodable"):
            with self.subTest(case["name"]):
                if not case["decodable"]:
                    with self.assertRaises(ValueError):
                        Job(vectors.body(case), "default")
                    continue
                job = Job(vectors.body(case), "default", message_id="none")
                self.assertEqual(case["jid"] or "none", job.jid)
                self.assertEqual((case["class"], case["retry"], case["retry_count"]), (job.class_, job.retry, job.retry_count))

    def test_poison(self) -> None:
        for case in vectors.cases("poison"):
            with self.subTest(case["name"]):
                begins = Begins()
                for record in case["stream"]:
                    begins.apply(json.dumps(record).encode())
                key, gone = Key(case["key"]["jid"], case["key"]["body"]), set(case["gone"])
                blames = begins.blame(key, case["queue"], case["self"], case.get("enqueued_at"), gone)
                self.assertEqual(case["blames"], blames)
                begins.begun(key, case["self"], blames, time.time())
                self.assertEqual(case["deaths"], begins.deaths(key, case["self"], gone))

    def test_outcomes(self) -> None:
        for case in vectors.cases("outcomes"):
            with self.subTest(case["name"]):
                self.outcome(case)

    def outcome(self, case: dict[str, Any]) -> None:
        d = case["delivery"]
        body = d["body"].encode()
        if case["outcome"]["kind"] == "undecodable":
            with self.assertRaises(ValueError):
                Job(body, d["queue"])
            return
        job = Job(body, d["queue"], d["headers"], d["message_id"])
        outcome = wanted(case, job)
        self.assertEqual(case["stream"] or "", outcome.stream)
        if outcome.record is None:
            self.assertIsNone(case["record"])
        else:
            self.record(case, outcome.record)
            self.assertEqual(case["headers"], trace_headers(job.headers.get("traceparent")))
        self.assertEqual(case["then"], "requeue" if outcome.requeue else "reject" if outcome.reject else "ack")
        if case["metric"] is None:
            self.assertEqual("", outcome.status)
        else:
            written = metric(job, outcome, "me", case["now"], 0.0)
            self.assertEqual(case["metric"], {name: written.get(name) for name in case["metric"]})
            self.assertEqual("error_class" in case["metric"], "error_class" in written)

    def record(self, case: dict[str, Any], record: bytes) -> None:
        got = without_job(record, case["job"])
        self.assertEqual(set(case["record"]), set(got))
        for name, value in case["record"].items():
            if isinstance(value, dict):
                self.assertTrue(value["min"] <= got[name] <= value["max"], name)
            else:
                self.assertEqual(value, got[name], name)


class Details(unittest.TestCase):
    def test_huge_integers_are_exact(self) -> None:
        digits = "1" * 5000
        job = Job(f'{{"class":"A","args":[{digits}, 7]}}'.encode(), "q")
        self.assertEqual(digits, str(job.args[0]))
        self.assertEqual(7, job.args[1])

    def test_members_twice_are_rejected_when_they_fail(self) -> None:
        for body in (b'{"class":"A","class":"B"}', b'{"\\u0063lass":"A"}'):
            outcome = judge(Job(body, "q"), ValueError("x"), 1.0)
            self.assertTrue(outcome.reject)
            self.assertEqual("dead", outcome.status)

    def test_own_backoff(self) -> None:
        job = Job(b'{"class":"A","jid":"j"}', "q")
        for own, least, most in ((lambda *_: 2, 2, 2), (lambda *_: None, 15, 45), (lambda *_: -1, 15, 45)):
            with self.assertNoLogs("millrace"):
                record = json.loads(judge(job, ValueError("x"), 1000.0, retry_in=own).record or b"")
            self.assertTrue(least <= record["retry_at"] - 1000 <= most)

    def test_own_backoff_that_fails_is_logged(self) -> None:
        def leaves(*_: object) -> float:
            raise SystemExit

        job = Job(rb'{"class":"A\nWARNING","jid":"j"}', "q")
        bad: list[Any] = [lambda *_: 1 / 0, lambda *_: "soon", lambda *_: float("nan"), lambda *_: 1e10, leaves]
        for own in bad:
            with self.assertLogs("millrace", "WARNING") as logs:
                record = json.loads(judge(job, ValueError("x"), 1000.0, retry_in=own).record or b"")
            line, below, *_ = logs.output[0].split("\n")
            facts = r'class="A\nWARNING" jid=j queue=q attempt=1'
            self.assertEqual(f"WARNING:millrace:millrace: retry_in failed, the usual backoff is used  {facts}", line)
            self.assertIn("Traceback", below)
            self.assertTrue(15 <= record["retry_at"] - 1000 <= 45)

    def test_a_retry_in_of_no_seconds_waits_as_long_as_usual(self) -> None:
        job = Job(b'{"class":"A","jid":"j"}', "q")
        for seconds in (float("nan"), float("inf"), -float("inf")):
            record = json.loads(judge(job, RetryIn(seconds), 1000.0).record or b"")
            self.assertTrue(15 <= record["retry_at"] - 1000 <= 45)

    def test_a_retry_in_of_no_number_is_refused(self) -> None:
        bad: list[Any] = [timedelta(minutes=5), Decimal(5), "5", None]
        for seconds in bad:
            with self.assertRaisesRegex(TypeError, "number of seconds"):
                RetryIn(seconds)

    def test_backtrace_begins_where_it_broke(self) -> None:
        def broken() -> None:
            try:
                raise KeyError("inner")
            except KeyError as e:
                raise ValueError("outer") from e

        job = Job(b'{"class":"A","backtrace":true}', "q")
        try:
            broken()
        except ValueError as e:
            lines = json.loads(judge(job, e, 1.0).record or b"")["backtrace"].split("\n")
        self.assertIn("in broken", lines[0])
        self.assertIn("caused by KeyError: 'inner'", lines)

    def test_twenty_lines_are_kept_where_the_job_does_not_say(self) -> None:
        def deep(levels: int) -> None:
            if levels:
                deep(levels - 1)
            raise ValueError("deep")

        for member, lines in (
            ("", 20),
            (',"backtrace":null', 20),
            (',"backtrace":3', 3),
            (',"backtrace":false', None),
            (',"backtrace":0', None),
        ):
            job = Job(f'{{"class":"A"{member}}}'.encode(), "q")
            try:
                deep(30)
            except ValueError as e:
                for retry_count in (0, 25):
                    job.retry_count = retry_count
                    kept = json.loads(judge(job, e, 1.0).record or b"").get("backtrace")
                    self.assertEqual(lines, kept and len(kept.split("\n")), member)

    def test_code_beside_the_library_is_not_the_library(self) -> None:
        code = compile("def broken(): raise ValueError", _HERE.rstrip("/") + "_shop/models.py", "exec")
        names: dict[str, Any] = {}
        exec(code, names)
        job = Job(b'{"class":"A"}', "q")
        try:
            names["broken"]()
        except ValueError as e:
            self.assertIn("in broken", json.loads(judge(job, e, 1.0).record or b"")["backtrace"])

    def test_errors_that_have_no_text(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        class Half(Exception):
            error_class = "\ud800" + "x" * 2000

        job = Job(b'{"class":"A"}', "q")
        self.assertIn("RuntimeError", json.loads(judge(job, Mute(), 1.0).record or b"")["error_message"])
        named = json.loads(judge(job, Half("\udfff"), 1.0).record or b"")
        self.assertEqual(1024, len(named["error_class"].encode()))
        self.assertEqual("\ufffd", named["error_message"])

    def test_too_large_is_rejected(self) -> None:
        job = Job(b'{"class":"A","args":["' + b"x" * (16 << 20) + b'"]}', "q")
        self.assertTrue(judge(job, ValueError("x"), 1.0).reject)

    def test_cancelled_and_stopping(self) -> None:
        job = Job(b'{"class":"A"}', "q")
        self.assertEqual("discarded", judge(job, ValueError(), 1.0, end="cancelled").status)
        self.assertTrue(judge(job, ValueError(), 1.0, stopping=True, end="stopping").requeue)
        self.assertEqual("failed", judge(job, ValueError(), 1.0, stopping=True).status)

    def test_queue_names(self) -> None:
        for name in ("", "é" * 101, "a\x85b", "\ud800"):
            with self.assertRaises(ValueError):
                check_queue(name)
