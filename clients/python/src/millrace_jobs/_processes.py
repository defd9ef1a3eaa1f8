"""Several processes that run one worker each."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

PAUSE = 0.1
"""How often it looks for processes that have ended, in seconds."""

AGAIN = 1.0
"""How long it waits before it replaces one."""


def supervise(command: Sequence[str], count: int) -> int:
    """Run a command in several processes until they are stopped, and give the exit code.

    Signals are passed on. A process that a signal has killed, as by the system when memory is short, is replaced; when one ends by itself,
    the others are stopped. A process whose standard input ends has lost this one.
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
        # In a group of its own: Ctrl-C in a terminal reaches it once, through us.
        self.processes.append(subprocess.Popen(self._command, stdin=subprocess.PIPE, process_group=0))

    def send(self, number: int) -> None:
        if number == signal.SIGTSTP:
            self._quiet = True
        else:
            self._stopping = True
        if self._stopping or self._quiet:
            self.due.clear()
        for process in self.processes:
            process.send_signal(number)
            if self._stopping:
                process.send_signal(signal.SIGCONT)  # SIGTSTP has suspended one that had not begun

    def look(self) -> None:
        """Find processes that have ended, and start those that are due."""
        for process in list(self.processes):
            if process.poll() is not None:
                self._ended(process)
        while self.due and self.due[0] <= time.monotonic():
            self.due.pop(0)
            self.start()

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        self.processes.remove(process)
        _close(process.stdin)
        code = process.returncode
        if self._stopping or self._quiet:
            early = code in (-signal.SIGTERM, -signal.SIGINT)  # it had not begun
            self.code = self.code or (0 if early else code if code >= 0 else 1)
        elif code < 0:
            _say(f"process {process.pid} was killed by {signal.Signals(-code).name}, and is replaced")
            self.due.append(time.monotonic() + AGAIN)
        else:
            _say(f"process {process.pid} has ended with exit code {code}: the others are stopped")
            self.code = code or 1
            self.send(signal.SIGTERM)


def _close(pipe: Any) -> None:
    if pipe:
        pipe.close()


def _say(text: str) -> None:
    print(f"python -m millrace_jobs: {text}", file=sys.stderr, flush=True)
