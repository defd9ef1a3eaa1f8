import json
import logging
import unittest
from typing import Any

from millrace_jobs import Discard, Job, Kill, RetryIn, Worker
from millrace_jobs._pairs import quoted
from millrace_jobs.testing import perform

URL = "amqp://guest:guest@127.0.0.1:1/"


class Failures(unittest.TestCase):
    def setUp(self) -> None:
        self.worker = Worker(URL)
        self.errors: dict[str, BaseException] = {
            "value": ValueError("no\nsuch order"), "discard": Discard("too old"), "kill": Kill(KeyError("customer")),
            "later": RetryIn(90, "busy"), "exit": SystemExit("the end"),
        }  # fmt: skip

        @self.worker.handle("Fail")
        def fail(job: Job) -> None:
            raise self.errors[job.args[0]]

    def logged(self, *args: Any, **options: Any) -> logging.LogRecord:
        with self.assertLogs("millrace", "INFO") as logs:
            perform(self.worker, "Fail", *args, **options)
        self.assertEqual(1, len(logs.records), logs.output)
        return logs.records[0]

    def test_a_failure_is_a_warning_with_its_stack(self) -> None:
        record = self.logged(["value"], attempt=3, jid="j1")
        self.assertEqual("WARNING", record.levelname)
        line = record.getMessage()
        self.assertRegex(
            line, r"^millrace: job failed  class=Fail jid=j1 queue=default attempt=3 next=retry retry_in=\d+s retry_at=20\S+Z "
        )
        self.assertTrue(line.endswith(r'error_class=ValueError error="no\nsuch order"'), line)
        stack = logging.Formatter().format(record).split("\n")
        self.assertIn("in fail", stack[2], "the stack begins in the handler")
        self.assertEqual("ValueError: no", stack[-2])
        self.assertEqual(("Fail", "j1", 3, "retry"), tuple(record.__dict__[name] for name in ("job_class", "jid", "attempt", "next")))

    def test_what_comes_next(self) -> None:
        for args, options, expected in (
            (["later"], {}, "next=retry retry_in=90s retry_at="),
            (["value"], {"retry": 0}, "next=dead reason=exhausted error_class=ValueError"),
            (["value"], {"retry": 0, "dead": False}, "next=discarded reason=exhausted error_class=ValueError"),
            (["kill"], {}, "next=dead reason=killed error_class=KeyError"),
            (["exit"], {}, "error_class=SystemExit"),
        ):
            with self.subTest(args=args, options=options):
                record = self.logged(args, **options)
                self.assertEqual("WARNING", record.levelname)
                self.assertIn(expected, record.getMessage())

    def test_a_discard_is_information(self) -> None:
        record = self.logged(["discard"], jid="j1")
        self.assertEqual("INFO", record.levelname)
        self.assertEqual('millrace: job discarded  class=Fail jid=j1 queue=default attempt=1 reason="too old"', record.getMessage())

    def test_a_job_that_expires_is_information_unless_it_dies(self) -> None:
        record = self.logged(["value"], expires_at=1.0, jid="j1")
        self.assertEqual("WARNING", record.levelname)
        self.assertEqual("millrace: job expired  class=Fail jid=j1 queue=default attempt=1 next=dead", record.getMessage())
        record = self.logged(["value"], expires_at=1.0, dead=False)
        self.assertEqual("INFO", record.levelname)
        self.assertIn("job expired  class=Fail", record.getMessage())
        self.assertTrue(record.getMessage().endswith(" next=discarded"))

    def test_another_log(self) -> None:
        mine = Worker(URL, log=logging.getLogger("shop.jobs"))
        with self.assertNoLogs("millrace"), self.assertLogs("shop.jobs", "WARNING"):
            perform(mine, "Unhandled")

    def test_a_log_that_fails_changes_nothing(self) -> None:
        class Broken(logging.Handler):
            def handle(self, _: logging.LogRecord) -> bool:
                raise OSError("disk full")

        self.worker.log = logging.getLogger("broken")
        self.worker.log.propagate = False
        self.worker.log.addHandler(Broken())
        self.assertEqual("failed", perform(self.worker, "Fail", ["value"]).outcome)

    def test_one_line_stays_one(self) -> None:
        for text in ("a b", "a\nWARNING forged", 'say "x"', "", "a\u2028b", "a=b"):
            shown = quoted(text)
            self.assertEqual(text, json.loads(shown))
            self.assertTrue(shown.isprintable())
        self.assertEqual("shop.orders.LookupError", quoted("shop.orders.LookupError"))


class Hooks(unittest.TestCase):
    def test_failure_and_death(self) -> None:
        said: list[Any] = []
        worker = Worker(URL)
        worker.handle("Fail", lambda job: 1 / 0)
        worker.handle("Discard", lambda job: (_ for _ in ()).throw(Discard("no")))
        worker.on("failure", lambda job, error: said.append(("failure", job.class_, type(error))))

        @worker.on("failure")
        async def report(job: Job, error: BaseException) -> None:
            said.append(("async failure", job.class_, type(error)))

        worker.on("death", lambda job, error: said.append(("death", job.class_, type(error))))
        with self.assertLogs("millrace", "INFO"):
            perform(worker, "Discard")
            self.assertEqual([], said)
            perform(worker, "Fail")
        both = [("failure", "Fail", ZeroDivisionError), ("async failure", "Fail", ZeroDivisionError)]
        self.assertEqual(both, said)
        with self.assertLogs("millrace", "WARNING"):
            perform(worker, "Fail", retry=0)
        self.assertEqual([*both, *both, ("death", "Fail", ZeroDivisionError)], said)

    def test_one_that_raises_changes_nothing(self) -> None:
        said: list[str] = []
        worker = Worker(URL)
        worker.handle("Fail", lambda job: 1 / 0)
        worker.on("failure", lambda job, error: exit("the end"))
        worker.on("failure", lambda job, error: said.append("second"))
        with self.assertLogs("millrace", "ERROR") as logs:
            self.assertEqual("failed", perform(worker, "Fail").outcome)
        self.assertIn("hook failure failed", logs.output[0])
        self.assertEqual(["second"], said)
