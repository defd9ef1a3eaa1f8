"""A private RabbitMQ for tests, and a proxy that delays or blocks its answers.

Everything is on 127.0.0.1.
"""

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika

from millrace_jobs import Worker

_SCRIPTS = [Path("/usr/lib/rabbitmq/bin"), Path("/opt/rabbitmq/sbin")]


class Broker:
    """A node of its own, in a folder of its own. It does not use other RabbitMQs on the machine.

    ``tls_url`` requires a client certificate. ``certificates`` is the folder with one: ca.pem,
    client.pem and client.key.
    """

    def __init__(self) -> None:
        server = next((path for path in (folder / "rabbitmq-server" for folder in _SCRIPTS) if path.is_file()), None)
        epmd = shutil.which("epmd")
        if not (server and epmd):
            raise unittest.SkipTest("RabbitMQ is not installed: run `make deps`")
        self._folder = tempfile.TemporaryDirectory(prefix="millrace-python-")
        self._processes: list[subprocess.Popen[bytes]] = []
        ports = _free_ports(4)
        self.port = ports[0]
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self.tls_url = f"amqps://guest:guest@localhost:{ports[3]}/"  # the name in its certificate
        self.certificates = Path(self._folder.name)
        self._ctl = server.with_name("rabbitmqctl")
        try:
            self._start(str(server), epmd, ports)
        except BaseException:
            self.stop()
            raise

    def _start(self, server: str, epmd: str, ports: list[int]) -> None:
        folder = Path(self._folder.name)
        env = self._env = _environment(folder, epmd=ports[1], distribution=ports[2])
        _certify(folder)
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nlisteners.ssl.1 = 127.0.0.1:{ports[3]}\n"
            f"ssl_options.cacertfile = {folder}/ca.pem\nssl_options.certfile = {folder}/server.pem\n"
            f"ssl_options.keyfile = {folder}/server.key\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n"
            "disk_free_limit.absolute = 10MB\nlog.console = false\nlog.file = rabbit.log\n"
        )
        (folder / "enabled_plugins").write_text("[].\n")
        (folder / "inetrc").write_text(f'{{host, {{127,0,0,1}}, ["localhost", "{socket.gethostname()}"]}}.\n{{lookup, [file, native]}}.\n')
        self._run(env, epmd, "-port", str(ports[1]), "-address", "127.0.0.1")
        eventually(lambda: _listens(ports[1]), "epmd answers", timeout=120)
        self._run(env, server)
        eventually(self._answers, "RabbitMQ answers", timeout=120)

    def _run(self, env: dict[str, str], *command: str) -> None:
        log = open(Path(self._folder.name) / "startup.log", "ab")  # noqa: SIM115
        self._processes.append(subprocess.Popen(command, env=env, cwd=self._folder.name, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        log.close()

    def _answers(self) -> bool:
        if any(process.poll() is not None for process in self._processes):
            raise RuntimeError((Path(self._folder.name) / "startup.log").read_text()[-2000:])
        try:
            pika.BlockingConnection(pika.URLParameters(self.url)).close()
        except Exception:
            return False
        return True

    def ctl(self, *arguments: str) -> None:
        """Run rabbitmqctl."""
        done = subprocess.run([self._ctl, *arguments], env=self._env, cwd=self._folder.name, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {arguments[0]}: {done.stdout}{done.stderr}")

    def stop(self) -> None:
        """Stop the node, and remove its files."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._folder.cleanup()

    @contextlib.contextmanager
    def channel(self) -> Iterator[Any]:
        """Open a connection and a channel."""
        connection = pika.BlockingConnection(pika.URLParameters(self.url))
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def topology(self, *queues: str) -> None:
        """Make the exchanges and streams of a sidecar, empty.

        Plain queues stand for most streams, because they are read once.
        """
        with self.channel() as channel:
            channel.exchange_declare("jobs.direct", "direct", durable=True)
            channel.exchange_declare("jobs.control", "fanout", durable=True)
            channel.queue_declare("jobs.begins", durable=True, arguments={"x-queue-type": "stream"})
            records = ("scheduled_jobs", "retries", "dead_jobs", "heartbeats", "job_metrics", "jobs.gated", "jobs.ends")
            for name in (*records, *(f"queue.{queue}" for queue in queues)):
                channel.queue_delete(name)
                channel.queue_declare(name, durable=True, arguments={"x-max-priority": 10} if name.startswith("queue.") else {})
                if name.startswith("queue."):
                    channel.queue_bind(name, "jobs.direct", name.removeprefix("queue."))

    def take(self, queue: str, timeout: float = 20) -> tuple[Any, bytes]:
        """Take the next message of a queue, once there is one. Return its properties and body."""
        deadline = time.monotonic() + timeout
        with self.channel() as channel:
            while time.monotonic() < deadline:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method:
                    return properties, body
                time.sleep(0.02)
        raise AssertionError(f"nothing came to {queue}")

    def count(self, queue: str) -> int:
        """Count the messages of a queue."""
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)

    @contextlib.contextmanager
    def leading(self, *replies: str, queue: str = "jobs.leader") -> Iterator[list[dict[str, Any]]]:
        """Take commands as a leader does, or from jobs.gated unique jobs.

        The replies are given in order; an empty one is no answer.
        """
        commands: list[dict[str, Any]] = []
        declared = threading.Event()
        done = threading.Event()

        def lead() -> None:
            with self.channel() as channel:
                channel.queue_declare(queue)
                declared.set()
                left = list(replies)
                try:
                    while left and not done.is_set():
                        for method, properties, body in channel.consume(queue, auto_ack=True, inactivity_timeout=0.1):
                            if method is None:
                                break
                            commands.append(json.loads(body))
                            if reply := left.pop(0):
                                channel.basic_publish(
                                    "", properties.reply_to, reply.encode(), pika.BasicProperties(correlation_id=properties.correlation_id)
                                )
                            break
                finally:
                    channel.cancel()
                    channel.queue_delete(queue)

        thread = threading.Thread(target=lead)
        thread.start()
        declared.wait(30)
        try:
            yield commands
        finally:
            done.set()
            thread.join(30)


class Proxy:
    """An address of the broker whose answers can be held back or delayed."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://guest:guest@127.0.0.1:{self._listener.getsockname()[1]}/"
        self.heard = threading.Event()  # while this is cleared, the broker's answers do not arrive
        self.heard.set()
        self.delay = 0.0
        self.connections = 0  # how many clients have made
        self.returns = 0  # how often the broker has returned messages
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                broker = socket.create_connection(("127.0.0.1", self._to))
                threading.Thread(target=self._forward, args=(client, broker, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(broker, client, True), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if answers:
                    self.returns += b"NO_ROUTE" in data
                    time.sleep(self.delay)
                    self.heard.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more connections."""
        self.heard.set()
        self._listener.close()


def _environment(folder: Path, epmd: int, distribution: int) -> dict[str, str]:
    """Return the whole environment of a node. Only PATH is inherited, as in internal/localbroker."""
    return {
        "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder),
        "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_INETRC": str(folder / "inetrc"),
        "ERL_FLAGS": "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_NODENAME": "millrace@localhost", "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"), "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "none.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"), "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"), "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +B i +sbwt none +sbwtdcpu none +sbwtdio none", "RUNNING_UNDER_SYSTEMD": "true",
    }  # fmt: skip


def _certify(folder: Path) -> None:
    """Write a CA, and certificates signed by it for the broker and for a client."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    def request(name: str, *arguments: str) -> None:
        curve = "ec_paramgen_curve:prime256v1"
        openssl(
            "req", *arguments, "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-keyout", f"{name}.key", "-subj", f"/CN=millrace test {name}"
        )

    request("ca", "-x509", "-days", "2", "-out", "ca.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    for name in ("server", "client"):
        request(name, "-out", f"{name}.csr")
        authority = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        openssl("x509", "-req", "-in", f"{name}.csr", *authority, "-extfile", "names", "-out", f"{name}.pem")


def _free_ports(count: int) -> list[int]:
    """Find ports below the range that the kernel uses for outgoing connections."""
    while True:
        first = random.randrange(14_000, 19_900)
        with contextlib.suppress(OSError), contextlib.ExitStack() as listeners:
            for port in range(first, first + count):
                listeners.enter_context(socket.create_server(("127.0.0.1", port)))
            return list(range(first, first + count))


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def eventually(condition: Callable[[], bool], what: str, timeout: float = 30) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def working(worker: Worker) -> Iterator[None]:
    """Run a worker, and stop it."""
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(60)
        assert not thread.is_alive(), "the worker has stopped"
