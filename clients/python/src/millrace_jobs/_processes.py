"""Several processes that run one worker each."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .worker import Worker

PROGRAM = "python -m millrace_jobs"

PAUSE = 0.1
"""How many seconds pass between checks for processes that have ended."""

AGAIN = 1.0
"""How many seconds pass before a process is replaced."""


def supervise(command: Sequence[str], count: int) -> int:
    """Run a command in several processes until they are stopped, and return the exit code.

    Signals are passed on: see `Parent`. A process that was killed by a signal, for example because
    memory is short, is replaced. A process that ends without an error is not replaced, and the
    others continue. When a process ends with an error, the others are stopped.
    """
    group = _Group(command)
    signals: deque[int] = deque()
    caught = (signal.SIGTERM, signal.SIGINT, signal.SIGTSTP)
    before = {number: signal.signal(number, lambda number, _frame: signals.append(number)) for number in caught}
    try:
        for _ in range(count):
            group.start()
        while group.processes or group.due:
            time.sleep(PAUSE)
            while signals:
                group.send(signals.popleft())
            group.look()
        return group.code
    finally:
        for number, action in before.items():
            signal.signal(number, action)


class _Group:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._stopping = False
        self._quiet = False
        self.processes: list[subprocess.Popen[bytes]] = []
        self.due: list[float] = []  # when processes are to be replaced
        self.code = 0

    def start(self) -> None:
        # In a group of its own, a Ctrl-C in a terminal reaches the process once, through this one.
        self.processes.append(subprocess.Popen(self._command, bufsize=0, stdin=subprocess.PIPE, process_group=0))

    def send(self, number: int) -> None:
        if number == signal.SIGTSTP:
            self._quiet = True
        else:
            self._stopping = True
        if self._stopping or self._quiet:
            self.due.clear()
        for process in self.processes:
            _send_number(process, number)
            if self._stopping:
                # SIGTSTP has suspended a process whose worker had not begun.
                process.send_signal(signal.SIGCONT)

    def look(self) -> None:
        """Find processes that have ended, and start those that are due."""
        for process in list(self.processes):
            if process.poll() is not None:
                self._ended(process)
        while self.due and self.due[0] <= time.monotonic():
            self.due.pop(0)
            try:
                self.start()
            except OSError as e:  # for example because memory is short
                say(f"a process cannot be started, trying again: {e}")
                self.due.append(time.monotonic() + AGAIN)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        self.processes.remove(process)
        _close(process.stdin)
        code = process.returncode
        if self._stopping or self._quiet:
            early = code in (-signal.SIGTERM, -signal.SIGINT)  # its worker had not begun
            self.code = self.code or (0 if early else code if code >= 0 else 1)
        elif code < 0:
            say(f"process {process.pid} was killed by {_name(-code)}, and is replaced")
            self.due.append(time.monotonic() + AGAIN)
        elif code == 0:  # the web UI, or the program itself, has stopped it
            say(f"process {process.pid} has ended, and is not replaced")
        else:
            say(f"process {process.pid} has ended with exit code {code}: the others are stopped")
            self.code = code
            self.send(signal.SIGTERM)


class Parent:
    """The process that has started this one with `supervise`.

    It writes the numbers of its signals to the standard input of this process. It does not send
    them as signals, because a supervisor may signal every process of a service, and then this
    process could not distinguish the two. When the parent ends, the worker is stopped.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._pipe = os.dup(0)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)  # programs that handlers start would wait for the parent's input
        os.close(null)
        threading.Thread(target=self._listen, name="millrace parent", daemon=True).start()

    def attach(self, worker: Worker) -> None:
        """Pass later messages of the parent on to this worker."""
        self._worker = worker

    def _listen(self) -> None:
        while numbers := os.read(self._pipe, 1024):
            for number in numbers:
                self._obey(number, "parent")
        self._obey(signal.SIGTERM, "end of the parent")

    def _obey(self, number: int, source: str) -> None:
        worker = self._worker
        if worker is None:  # its module is still being loaded
            os.kill(os.getpid(), number)
        elif number == signal.SIGTSTP:
            worker.quiet()
        else:
            worker._soon(partial(worker._stop, source))


def _send_number(process: subprocess.Popen[bytes], number: int) -> None:
    if process.stdin:
        with contextlib.suppress(OSError):  # the process has ended
            process.stdin.write(bytes([number]))


def _close(pipe: Any) -> None:
    if pipe:
        pipe.close()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"


def say(text: str) -> None:
    """Write a line to standard error with one write, because several processes share it."""
    with contextlib.suppress(OSError):
        os.write(2, f"{PROGRAM}: {text}\n".encode(errors="backslashreplace"))
