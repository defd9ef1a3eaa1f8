"""How the processes of one command are replaced. The rest is in test_command."""

import signal
import sys
import unittest
from unittest import mock

from millrace_jobs._processes import _Group

from .broker import eventually


class Group(unittest.TestCase):
    def test_one_that_cannot_be_started_is_tried_again(self) -> None:
        group = _Group(["/nowhere/python"])
        group.due.append(0.0)
        with mock.patch("millrace_jobs._processes.say") as say:
            group.look()
        self.assertEqual(([], 1), (group.processes, len(group.due)))
        self.assertIn("a process cannot be started, trying again: ", say.call_args.args[0])

    def test_one_that_a_signal_without_a_name_has_killed(self) -> None:
        number = signal.SIGRTMIN + 1
        group = _Group([sys.executable, "-c", f"import os; os.kill(os.getpid(), {number})"])
        group.start()

        def ended() -> bool:
            group.look()
            return not group.processes

        with mock.patch("millrace_jobs._processes.say") as say:
            eventually(ended, "it has ended")
        self.assertEqual(1, len(group.due))
        self.assertIn(f"was killed by signal {number}, and is replaced", say.call_args.args[0])
