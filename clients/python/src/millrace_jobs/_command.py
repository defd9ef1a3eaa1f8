"""The command ``python -m millrace_jobs worker module:worker``."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from ._processes import PROGRAM, Parent, say, supervise
from ._version import __version__
from .errors import Unreachable
from .worker import Worker

EPILOG = """\
example: in shop.py there is worker = Worker(queues=["mail"]), with its handlers below:

  python -m millrace_jobs worker shop:worker --processes 4
"""


class Mistake(Exception):
    """An error in the command line, or in the module that it names."""


def main(args: Sequence[str]) -> int:
    """Run the command, and return its exit code."""
    options = _parser().parse_args(args)
    try:
        if options.processes > 1:
            return supervise([sys.executable, "-m", __package__, "worker", options.worker, "--child"], options.processes)
        parent = Parent() if options.child else None
        worker = _load(options.worker)
        if parent:
            parent.attach(worker)
        _run(worker)
    except (Mistake, Unreachable) as e:
        say(str(e))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Millrace for Python.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    worker = commands.add_parser(
        "worker", help="run a worker", description="Imports a module and runs the worker in it until SIGTERM or SIGINT. SIGTSTP: it takes "
        "no more jobs.", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    worker.add_argument("worker", metavar="module:worker", help="a module, found from the current folder, and the name of the Worker in it")
    worker.add_argument("--processes", metavar="N", type=_count, default=1, help="how many processes run it, each with all its lanes (1)")
    # Marks one of several processes.
    worker.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


def _load(name: str) -> Worker:
    """Import the module and return its worker, or raise Mistake.

    Errors of the module itself are raised unchanged.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise Mistake(f"{name!r} does not name a worker: write module:worker, for example {module_name or 'shop'}:worker")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as e:
        if not e.name or not f"{module_name}.".startswith(f"{e.name}."):
            raise  # the module exists, but another module that it imports does not
        hint = f"; write {module_name.removesuffix('.py')}:{path}" if module_name.endswith(".py") else ""
        raise Mistake(f"there is no module {e.name} in {folder} or in Python's path{hint}") from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise Mistake(f"{module_name} has no {path}{_instead(module_name)}")
        found = getattr(found, part)
    if not isinstance(found, Worker):
        raise Mistake(f"{name} is not a Worker but of type {type(found).__name__}{_instead(module_name)}")
    return found


def _instead(module_name: str) -> str:
    workers = [f"{module_name}:{name}" for name, value in vars(sys.modules[module_name]).items() if isinstance(value, Worker)]
    return f": it has {', '.join(workers)}" if workers else ", and no other Worker in it"


def _run(worker: Worker) -> None:
    if worker._running:
        raise Mistake('the worker has run already: call its run() only below if __name__ == "__main__":')
    log_to_stderr()
    worker.run(signals=True)


def log_to_stderr() -> None:
    """Log what a worker does, unless the application has set up logging itself."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO)
        logging.getLogger("pika").setLevel(logging.CRITICAL)
