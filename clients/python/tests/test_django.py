"""The README's advice for Django, with a real broker."""

import importlib.util
import tempfile
import threading
import unittest
from typing import Any

from millrace_jobs import Client, Job, Worker

from . import readme
from .broker import Broker


@unittest.skipUnless(importlib.util.find_spec("django"), "Django is in .cache/python only")
class Django(unittest.TestCase):
    def setUp(self) -> None:
        self.broker = Broker()
        self.addCleanup(self.broker.stop)
        self.broker.topology("default")
        self.client = Client(self.broker.url)
        self.addCleanup(self.client.close)

    def worker(self, database: str) -> Worker:
        """Run the README's program, with this test's broker and database."""
        from django.conf import settings

        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": database}})
        program: dict[str, Any] = {}
        exec(readme.program("django_worker.py").replace("Worker(", f"Worker({self.broker.url!r}, concurrency=1, "), program)
        worker = program["worker"]
        assert isinstance(worker, Worker)
        return worker

    def test_the_readme(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="millrace-django-")
        self.addCleanup(folder.cleanup)
        worker = self.worker(folder.name + "/database")
        self.check_connections(worker)
        self.check_transactions()

    def check_connections(self, worker: Worker) -> None:
        """A job finds no connection of the job before it in its thread."""
        from django.db import connection

        before: list[Any] = []
        threads: list[int] = []
        done = threading.Semaphore(0)

        @worker.handle("Query")
        def query(job: Job) -> None:
            before.append(connection.connection)
            threads.append(threading.get_ident())
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            done.release()

        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            for _ in range(2):
                self.client.enqueue("Query")
                self.assertTrue(done.acquire(timeout=30), "the job ran")
        finally:
            worker.stop()
            thread.join(60)
        self.assertFalse(thread.is_alive(), "the worker has stopped")
        self.assertEqual(1, len(set(threads)), "both jobs ran in one thread")
        self.assertEqual([None, None], before)

    def check_transactions(self) -> None:
        """A job is enqueued when its transaction is committed, and only then."""
        from django.db import connection, transaction

        def order(number: int) -> None:
            transaction.on_commit(lambda: self.client.enqueue("Charge", [number], jid=f"order-{number}"))
            self.assertEqual(0, self.broker.count("queue.default"), "the transaction is still open")

        with self.assertRaises(LookupError), transaction.atomic():
            order(1)
            raise LookupError("is rolled back")
        with transaction.atomic():
            order(2)
        self.assertEqual("order-2", self.broker.take("queue.default")[0].message_id)
        self.assertEqual(0, self.broker.count("queue.default"))
        connection.close()
