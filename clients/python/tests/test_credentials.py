"""Credentials that the broker changes between two connections, and client certificates."""

import asyncio
import logging
import ssl
import threading
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

from millrace_jobs import App, AsyncClient, Client, Unconfirmed, Unreachable, Worker

from .broker import Broker, eventually

broker: Broker


def setUpModule() -> None:
    global broker
    broker = Broker()


def tearDownModule() -> None:
    broker.stop()


class Vault:
    """Gives a program its credentials."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.fault: Exception | None = None
        self.asked: list[str] = []

    def give(self, who: str) -> tuple[str, str]:
        self.asked.append(who)
        if self.fault:
            raise self.fault
        return "rotating", self.password


class Slow:
    """Credentials that arrive when the test releases them."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer = threading.Event()

    def give(self) -> tuple[str, str]:
        self.asked += 1
        self.answer.wait()
        return "guest", "guest"


class Case(unittest.TestCase):
    def setUp(self) -> None:
        broker.topology("default")
        self.seen: list[Any] = []

    def run_worker(self, worker: Worker) -> None:
        """Run a worker that notes its jobs, until the test ends."""
        worker.handle("Seen", lambda job: self.seen.append(job.args[0]))
        running = threading.Thread(target=worker.run)
        running.start()
        self.addCleanup(running.join)
        self.addCleanup(worker.stop)


class Rotation(Case):
    def failure(self, enqueue: Callable[..., object], why: str) -> BaseException:
        """Return the error of a job that cannot be enqueued, once it contains ``why``.

        Before, a client may send the job into a connection that is lost.
        """
        for _ in range(30):
            with self.assertRaises((Unreachable, Unconfirmed)) as failed:
                enqueue("Seen", ["never"], deadline=1)
            if isinstance(failed.exception, Unreachable) and why in str(failed.exception):
                return failed.exception
        raise AssertionError(f"no job failed with {why}")

    def slow(self) -> Slow:
        """Credentials that arrive at the end of the test at the latest."""
        slow = Slow()
        self.addCleanup(slow.answer.set)
        return slow

    def test_the_password_changes_between_two_connections(self) -> None:
        url = broker.url.replace("guest:guest@", "of-the-url:unused@")
        vault = Vault("secret-one")
        broker.ctl("add_user", "rotating", vault.password)
        broker.ctl("set_permissions", "rotating", ".*", ".*", ".*")

        async def give() -> tuple[str, str]:
            await asyncio.sleep(0)
            return vault.give("async client")

        async def give_to_worker() -> tuple[str, str]:
            await asyncio.sleep(0)
            return vault.give("worker")

        log = logging.getLogger("test.credentials")
        with self.assertLogs(log, "INFO") as logged:
            self.run_worker(Worker(url, log=log, credentials=give_to_worker))
            client = Client(url, credentials=lambda: vault.give("client"))
            self.addCleanup(client.close)
            async_client = AsyncClient(url, credentials=give)
            self.addCleanup(lambda: asyncio.run(async_client.close()))
            client.enqueue("Seen", ["before"])
            asyncio.run(async_client.enqueue("Seen", ["before, async"]))
            eventually(lambda: len(self.seen) == 2, "the jobs have run", timeout=60)
            self.assertEqual(["async client", "client", "worker"], sorted(vault.asked))

            vault.password = "secret-two"
            # This error sounds like the broker's refusal, but comes from the program. So the next
            # attempt asks again.
            vault.fault = PermissionError("the vault is sealed: 403")
            broker.ctl("change_password", "rotating", vault.password)
            broker.ctl("close_all_user_connections", "rotating", "rotated")
            line = "no connection to the broker, trying again: credentials: the vault is sealed: 403"
            eventually(lambda: sum(line in text for text in logged.output) >= 2, "the worker has asked twice in vain", timeout=60)
            for enqueue in (client.enqueue, lambda *job, **how: asyncio.run(async_client.enqueue(*job, **how))):
                cause = self.failure(enqueue, "credentials: the vault is sealed: 403").__cause__
                assert cause
                assert cause.__cause__
                self.assertIs(vault.fault, cause.__cause__.__cause__)
            vault.fault = None
            client.enqueue("Seen", ["after"])
            asyncio.run(async_client.enqueue("Seen", ["after, async"]))
            eventually(lambda: len(self.seen) == 4, "the jobs of the new connections have run", timeout=60)
        self.assertEqual({"before", "before, async", "after", "after, async"}, set(self.seen))
        self.assertTrue(all(text.startswith("WARNING") for text in logged.output if "vault" in text))
        self.assertNotIn("secret-", "".join(logged.output))

    def test_the_first_attempts_may_fail(self) -> None:
        answers: list[Exception | tuple[str, str]] = [ConnectionError("403"), TimeoutError(), ("guest", "guest")]

        def give() -> tuple[str, str]:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        with Client(broker.url.replace("guest:guest@", ""), credentials=give) as client:
            client.enqueue("A")
        self.assertEqual([], answers)

    def test_a_slow_function_is_called_once_for_several_publishes(self) -> None:
        slow = self.slow()
        with Client(broker.url, credentials=slow.give) as client:
            for _ in range(2):
                with self.assertRaises(Unreachable):
                    client.enqueue("A", deadline=1)
            self.assertEqual(1, slow.asked)
            slow.answer.set()
            client.enqueue("A")

    def test_a_function_that_hangs_is_not_called_again(self) -> None:
        slow = self.slow()
        log = logging.getLogger("test.hanging")
        with mock.patch("millrace_jobs._login.ASK_TIMEOUT", 0.1), self.assertLogs(log, "INFO") as logged:
            self.run_worker(Worker(broker.url, log=log, credentials=slow.give))
            line = "credentials: no answer in 0.1 s"
            eventually(lambda: sum(line in text for text in logged.output) >= 3, "it has waited three times", timeout=60)
            self.assertEqual(1, slow.asked)
            slow.answer.set()
            eventually(lambda: any("worker started" in text for text in logged.output), "it has connected", timeout=60)

    def test_a_password_that_is_wrong(self) -> None:
        def wrong() -> tuple[str, str]:
            return "guest", "wr0ng"

        with self.assertRaisesRegex(Unreachable, "turns us away") as failed:
            Worker(broker.url, credentials=wrong).run()
        self.assertNotIn("wr0ng", str(failed.exception))
        with Client(broker.url, credentials=wrong) as client, self.assertRaises(Unreachable):
            client.enqueue("A")

    def test_what_is_no_use_is_refused(self) -> None:
        given: Any
        for given in (("guest", "s3cret"), "guest:s3cret"):
            with self.assertRaisesRegex(TypeError, "is not a function that returns") as failed:
                Client(broker.url, credentials=given)
            self.assertNotIn("s3cret", str(failed.exception))

        async def give() -> tuple[str, str]:
            return "guest", "guest"

        given = give
        for make in (Client, App):
            with self.assertRaisesRegex(TypeError, "credentials is async: an AsyncClient takes"):
                make(broker.url, credentials=given)
        with self.assertRaisesRegex(TypeError, "must take 0 arguments"):
            Worker(broker.url, credentials=lambda who: who)  # type: ignore[arg-type]
        for answer in (None, "ab", ("guest",), ("guest", b"s3cret")):
            given = lambda answer=answer: answer  # noqa: E731
            with Client(broker.url, credentials=given, timeout=1) as client:
                with self.assertRaisesRegex(Unreachable, r"must return \(username, password\), both str") as refused:
                    client.enqueue("A")
                self.assertNotIn("s3cret", str(refused.exception))


class Certificates(Case):
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(broker.certificates / "ca.pem"))

    def test_a_broker_that_demands_a_client_certificate(self) -> None:
        tls = self.tls()
        tls.load_cert_chain(broker.certificates / "client.pem", broker.certificates / "client.key")
        self.run_worker(Worker(broker.tls_url, tls=tls))
        with Client(broker.tls_url, tls=tls) as client:
            client.enqueue("Seen", ["by TLS"])
        app = App(broker.tls_url, tls=tls)
        self.addCleanup(app.client.close)
        app.client.enqueue("Seen", ["by an app"])
        eventually(lambda: len(self.seen) == 2, "the jobs have run", timeout=60)
        for url, context, why in (
            (broker.tls_url, self.tls(), "(?i)certificate|ssl|lost|closed|reset"),
            (broker.tls_url, None, "(?i)certificate verify failed"),
            (broker.tls_url.replace("localhost", "127.0.0.1"), tls, "(?i)certificate is not valid for '127.0.0.1'"),
        ):
            with Client(url, tls=context, timeout=3) as client, self.assertRaisesRegex(Unreachable, why):
                client.enqueue("Seen", ["never"])

    def test_what_is_no_use_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "tls needs an amqps:// URL"):
            Client(broker.url, tls=self.tls())
        with self.assertRaisesRegex(TypeError, "tls is no ssl.SSLContext, but a dict"):
            Worker(broker.tls_url, tls={})  # type: ignore[arg-type]
