"""The app for Django, with a real broker. The project is the one of the README."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from . import readme
from .broker import Broker, eventually

SETTINGS = """
import sys
from pathlib import Path

SECRET_KEY = "test"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(__file__).with_name("database")}}
DATABASES["default"]["TEST"] = {"NAME": Path(__file__).with_name("test-database")}
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = Path(__file__).with_name("mail")
"""

SIGN_UP = """
import django
django.setup()

from django.db import connection, transaction
from django.test import RequestFactory
from millrace_jobs import Invalid
from millrace_jobs.django import app, enqueue_on_commit, push_on_commit
from shop.jobs import welcome
from shop.views import sign_up

try:
    with transaction.atomic():
        enqueue_on_commit(welcome, 99)
        raise LookupError("is rolled back")
except LookupError:
    pass

with transaction.atomic():
    jid = enqueue_on_commit(welcome.options(tags=["checked"]), 98)
    try:
        push_on_commit(welcome.options(priority=11).job(97))
    except Invalid as e:
        print("refused", e)
print("promised", jid)
answer = sign_up(RequestFactory().post("/", {"name": "ann", "email": "ann@example.com"}))
print("answered", answer.status_code)
app.client.close()
"""

CONNECTIONS = """
import threading
from django.db import connection
from millrace_jobs import Job, Worker
from millrace_jobs.django import configure_worker

@configure_worker
def add(worker: Worker) -> None:
    @worker.handle("Query")
    def query(job: Job) -> None:
        print("found", connection.connection, threading.get_ident(), flush=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
"""

TESTS = """
from django.contrib.auth.models import User
from django.test import TestCase
from millrace_jobs.django import app, enqueue_on_commit, make_worker
from millrace_jobs import Unreachable
from millrace_jobs.testing import Fake
from shop.jobs import welcome

class Welcomes(TestCase):
    def test_it(self) -> None:
        client = app.client = Fake(make_worker())
        user = User.objects.create_user("bob", "bob@example.com")
        with self.captureOnCommitCallbacks(execute=True):
            enqueue_on_commit(welcome, user.pk)
            self.assertEqual([], client.jobs())
        self.assertEqual(1, client.drain())
        self.assertEqual(1, User.objects.count(), "the connection of the test is open")

    def test_broker_is_away(self) -> None:
        tried = []
        class Away(Fake):
            def push(self, job, *, deadline=None):
                tried.append(job.args[0])
                raise Unreachable("away")
        app.client = Away()
        with self.assertRaises(Unreachable), self.captureOnCommitCallbacks(execute=True):
            for i in range(3):
                enqueue_on_commit(welcome, i)
        self.assertEqual([0, 1, 2], tried, "an error of one does not stop the others")
"""


@unittest.skipUnless(importlib.util.find_spec("django"), "Django is in .cache/python only")
class Django(unittest.TestCase):
    broker: Broker

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = Broker()
        cls.addClassCleanup(cls.broker.stop)

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="millrace-django-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.broker.topology("mail")
        (self.folder / "shop").mkdir()
        self.write("shop/__init__.py", "")
        for file in ("shop/jobs.py", "shop/views.py"):
            self.write(file, readme.program(file))
        self.settings(SETTINGS + readme.program("settings_part.py").replace("amqp://guest:guest@127.0.0.1:5672/", self.broker.url))
        self.manage("migrate", "--verbosity=0")

    def write(self, file: str, text: str) -> None:
        (self.folder / file).write_text(text)

    def settings(self, text: str) -> None:
        self.write("settings.py", text)

    def env(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), *sys.path])
        return {**os.environ, "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def run_python(self, *args: str, code: int = 0) -> str:
        done = subprocess.run([sys.executable, *args], env=self.env(), cwd=self.folder, text=True, capture_output=True, timeout=120)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def manage(self, *args: str, code: int = 0) -> str:
        return self.run_python("-m", "django", *args, code=code)

    def worker(self, *args: str) -> Path:
        """Run the worker in the background, and return the file of its output."""
        out = self.folder / "worker.out"
        with out.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "django", "millrace_worker", *args], env=self.env(), cwd=self.folder, stdout=file, stderr=file
            )

        def stop() -> None:
            process.terminate()
            self.assertEqual(0, process.wait(60), out.read_text())

        self.addCleanup(stop)
        return out

    def mails(self) -> str:
        return "".join(file.read_text() for file in (self.folder / "mail").glob("*"))

    def test_the_readme(self) -> None:
        said = self.run_python("-c", SIGN_UP)
        self.assertIn("refused", said)
        self.assertIn("answered 200", said)
        promised, signed_up = self.broker.take("queue.mail"), self.broker.take("queue.mail")
        self.assertIn(f"promised {promised[0].message_id}", said)
        self.assertIn(b'"args":[98]', promised[1])
        self.assertIn(b'"args":[1]', signed_up[1])
        self.assertEqual(0, self.broker.count("queue.mail"), "what was rolled back is not enqueued")
        self.run_python("-c", SIGN_UP.replace("ann", "eve"))
        self.worker("--queue", "mail", "--concurrency", "1")
        eventually(lambda: "To: eve@example.com" in self.mails(), "the mail is sent", timeout=60)

    def test_connections(self) -> None:
        """A job finds no connection of the job before it in its thread."""
        self.write("shop/jobs.py", CONNECTIONS)
        out = self.worker("--queue", "mail,2", "--concurrency", "1")
        enqueue = "from millrace_jobs.django import app\nfor _ in range(2): app.client.enqueue('Query', queue='mail')\napp.client.close()"
        self.run_python("-c", enqueue)
        eventually(lambda: out.read_text().count("found ") == 2, "both jobs ran", timeout=60)
        found = [line.split()[1:] for line in out.read_text().splitlines() if line.startswith("found ")]
        self.assertEqual(found[0], found[1], "both jobs ran in one thread")
        self.assertEqual("None", found[1][0])

    def test_tests_of_a_project(self) -> None:
        self.write("shop/tests.py", TESTS)
        self.assertIn("OK", self.manage("test", "shop"))

    def test_what_is_wrong_is_said(self) -> None:
        self.assertIn("the weight of mail must be a number", self.manage("millrace_worker", "--queue", "mail,x", code=2))
        self.assertIn("CommandError", self.manage("millrace_worker", "--concurrency", "0", code=1))
        for wrong, said in {
            'MILLRACE = {"URl": ""}': "MILLRACE has URl, which is not one of URL, CLIENT, WORKER",
            'MILLRACE = {"WORKER": {"queue": "mail"}}': 'MILLRACE["WORKER"] has queue, which is not one of queues, ',
            'MILLRACE = {"CLIENT": 5}': 'MILLRACE["CLIENT"] must be a dict, not int',
        }.items():
            self.settings(SETTINGS + 'INSTALLED_APPS += ["millrace_jobs.django"]\n' + wrong)
            self.assertIn(said, self.manage("check", code=1))
