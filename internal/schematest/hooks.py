"""What OpenAPI cannot say. Requests that were meant to be right are made so; those that were meant to be wrong are left alone."""

import time

import schemathesis
from schemathesis import GenerationMode

RETRY = {"type": "retry", "jid": "mended", "retry_at": 4e9, "retry_count": 1, "job": {"jid": "mended", "class": "C", "args": []}}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None:
        return
    brief(case)
    if case.meta.generation.mode != GenerationMode.POSITIVE:
        stay(case)
        return
    together(case)
    existing(case)
    if isinstance(case.body, dict) and isinstance(case.body.get("queue"), str):
        case.body["queue"] = "q0"  # a name's limit is in bytes, and random ones would each make a queue


def brief(case):
    """Events go on for an hour."""
    if case.operation.path == "/api/events":
        lasts = (case.query or {}).get("for")
        if lasts is None or str(lasts).isdigit():
            case.query = {**(case.query or {}), "for": 0}


def stay(case):
    """A parameter without any value is left out of the URL, and what was meant to be wrong is right then: it stays, empty."""
    for name, value in list((case.query or {}).items()):
        if nothing(value):
            case.query[name] = ""


def nothing(value):
    if isinstance(value, (list, tuple)):
        return all(nothing(v) for v in value)
    return value is None or value == {}


def together(case):
    """Some parameters do not go together."""
    query = case.query
    if not query:
        return
    a_list = "{jid}" not in case.operation.path
    if "format" in query:
        drop(query, "page", "page_size", "limit", "offset", "next")
    if "page" in query:
        drop(query, "limit", *(["offset"] if a_list else []))
    else:
        drop(query, "page_size")
    if "next" in query:
        drop(query, "offset")
    if case.operation.path.startswith("/api/job-metrics"):  # a range has an order, and so many steps
        drop(query, "from", *(["step"] if "to" in query else []))


def drop(query, *names):
    for name in names:
        query.pop(name, None)


def existing(case):
    """Random names find nothing: half of the requests get one that is there."""
    parameters = case.path_parameters or {}
    if case.operation.path.endswith("/resubmit"):  # what is right depends on the stream
        parameters["stream"] = "retries"
        case.body = RETRY
    elif "jid" in parameters and time.time_ns() % 2:
        parameters["jid"] = ("a", "b", "same", "a/b", "é", "0")[time.time_ns() // 1000 % 6]
    elif "identity" in parameters and time.time_ns() % 2:
        parameters["identity"] = "host:1:w"
    elif "stream" in parameters and time.time_ns() % 2:
        parameters["stream"], parameters["offset"] = "retries", time.time_ns() // 1000 % 12
