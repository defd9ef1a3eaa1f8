import unittest

from millrace import Invalid, Job, NewJob, UnknownClass, Worker
from millrace.testing import Fake, Inline

seen: list[object] = []
worker = Worker("amqp://nowhere.invalid")


@worker.handle("Note")
def note(job: Job) -> None:
    seen.append(job.args[0])


class Helpers(unittest.TestCase):
    def setUp(self) -> None:
        seen.clear()

    def test_inline(self) -> None:
        client = Inline(worker)
        jid = client.enqueue("Note", [(1, 2)], queue="low")
        self.assertEqual(32, len(jid))
        self.assertEqual([[1, 2]], seen, "args went through JSON")
        with self.assertRaises(UnknownClass):
            client.enqueue("Nobody")
        with self.assertRaises(Invalid):
            client.enqueue("Note", [object()])

    def test_fake(self) -> None:
        client = Fake(worker)
        client.enqueue("Note", ["now"])
        client.enqueue_at(12.5, "Note", ["later"])
        client.enqueue_bulk([NewJob("Note", ["many"])])
        self.assertEqual([None, 12.5, None], [j.at for j in client.jobs()])
        self.assertEqual("Note", client.jobs()[0].class_)
        self.assertEqual(["now"], client.jobs()[0].args)
        self.assertEqual(3, client.drain())
        self.assertEqual(["now", "later", "many"], seen)
        client.enqueue("Note", ["x"])
        client.clear()
        self.assertEqual(0, client.drain())

    def test_middleware(self) -> None:
        client = Fake()

        @client.use
        def only_small(job: NewJob, next):  # type: ignore[no-untyped-def]
            job.options["queue"] = "changed"
            return next(job) if len(job.args) < 2 else None

        self.assertEqual("", client.enqueue("Note", [1, 2]))
        client.enqueue("Note", [1])
        self.assertEqual(["changed"], [j.job.queue for j in client.jobs()])
