"""Tested by clients/conformance, whose README says what this program must do."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from millrace_jobs import BulkError, Client, Error, GovernedQueue, Limit, NewJob, PeriodicJob, Unique


def bulk(client: Client, command: dict[str, Any]) -> list[str | None]:
    jids: list[str | None] = []
    for begin in range(0, command["count"], 500):
        numbers = range(begin, min(begin + 500, command["count"]))
        jobs = [NewJob(command["class"], [f"{command['prefix']}{n}"], queue=command["queue"]) for n in numbers]
        try:
            jids += client.enqueue_bulk(jobs)
        except BulkError as e:
            print(e, file=sys.stderr)
            jids += e.jids
    return jids


def marks(name: str) -> Callable[[NewJob, Callable[[NewJob], str | None]], str | None]:
    """Return middleware that records its position."""

    def around(job: NewJob, next_: Callable[[NewJob], str | None]) -> str | None:
        if job.class_ == "Swallowed":
            return None
        if job.class_ == "Wrapped":
            job.args = [*job.args, name]
        return next_(job)

    return around


def options_of(command: dict[str, Any]) -> dict[str, Any]:
    options = {"deadline": command.get("timeout"), **command.get("options", {})}
    if isinstance(options.get("unique"), dict):
        names = {"while": "while_", "for": "for_"}
        options["unique"] = Unique(**{names.get(name, name): value for name, value in options["unique"].items()})
    return options


def enqueue_unique(client: Client, command: dict[str, Any]) -> dict[str, Any]:
    stays = client.enqueue_unique(command["class"], command["args"], at=command.get("at"), **options_of(command))
    return {"jids": [stays.jid], "duplicate": stays.duplicate}


def carry_out(client: Client, command: dict[str, Any]) -> list[str | None]:
    options = options_of(command)
    match command["op"]:
        case "bulk":
            return bulk(client, command)
        case "enqueue_at":
            return [client.enqueue_at(command["at"], command["class"], command["args"], **options)]
        case "enqueue_in":
            return [client.enqueue_in(command["in"], command["class"], command["args"], **options)]
        case _:
            return [client.enqueue(command["class"], command["args"], **options)]


def define(client: Client, command: dict[str, Any]) -> dict[str, Any]:
    def job(of: dict[str, Any]) -> PeriodicJob:
        names = {"class": "class_", "except": "except_"}
        members = {names.get(name, name): value for name, value in of.items() if name != "queue"}
        return PeriodicJob(**members, options={"queue": of["queue"]} if "queue" in of else {})

    jobs = map(job, command["jobs"]) if "jobs" in command else None
    limits = [Limit(**limit) for limit in command["limits"]] if "limits" in command else None
    queues = [GovernedQueue(**queue) for queue in command["queues"]] if "queues" in command else None
    return vars(client.define(command["source"], jobs, limits=limits, queues=queues, deadline=command["timeout"]))


def main() -> None:
    with Client(os.environ["MILLRACE_AMQP_URL"]) as client, open(os.environ["MILLRACE_RESULTS"], "a") as results:
        client.use(marks("outer"))
        client.use(marks("inner"))
        for number, line in enumerate(sys.stdin, 1):
            result: dict[str, Any] = {"line": number}
            try:
                command = json.loads(line)
                match command["op"]:
                    case "define":
                        result.update(define(client, command))
                    case "enqueue_unique":
                        result.update(enqueue_unique(client, command))
                    case _:
                        result["jids"] = carry_out(client, command)
            except Error as e:
                result.update(error=type(e).__name__, message=str(e))
            results.write(json.dumps(result) + "\n")
            results.flush()


main()
