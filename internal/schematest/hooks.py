"""Rules that OpenAPI cannot express.

They correct requests that are meant to be valid, and do not change the others.
"""

import os
import re
import zlib
from urllib.parse import unquote_to_bytes

import hypothesis
import schemathesis
from schemathesis import GenerationMode

LEASES = os.environ["LEASES"].split()
OPERATIONS = os.environ["OPERATIONS"].split()
REJECTED = os.environ["REJECTED"].split()
RETRY = {"type": "retry", "jid": "fixed", "retry_at": 4e9, "retry_count": 1, "job": {"jid": "fixed", "class": "C", "args": []}}

# schemathesis targets successful answers. After the first one, Hypothesis uses most of the remaining
# examples to shorten that request. Without a target, each example is another request.
hypothesis.target = lambda observation, *, label="": observation


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
        # The limit of a name is in bytes, and each random name would create a queue.
        case.body["queue"] = "q0"
    if case.operation.path == "/api/operations" and isinstance(case.body, dict):
        one_way(case.body)
    if case.operation.label == "POST /api/messages" and isinstance(case.body, dict):
        deliverable(case)
    if case.operation.path == "/api/definitions" and isinstance(case.body, dict):
        definitions(case.body)
    if case.operation.label == "PUT /api/periodic-jobs/{name}" and isinstance(case.body, dict):
        periodic(case.body, (case.path_parameters or {}).get("name"))
    if case.operation.label == "PUT /api/limits/{name}" and isinstance(case.body, dict):
        limit(case.body, (case.path_parameters or {}).get("name"))
    if case.operation.label == "PUT /api/governed-queues/{name}" and isinstance(case.body, dict):
        governed(case.body, (case.path_parameters or {}).get("name"))
    if case.operation.path.endswith("/move") and isinstance(case.body, dict):
        case.body["to"] = "leased" if (case.path_parameters or {}).get("queue") == "q0" else "q0"


def definitions(body):
    """Makes a document of definitions valid: it has a list of each kind, whose names differ."""
    body["source"] = f"s{len(body['source']) % 3}"
    for kind, valid in (("periodic_jobs", periodic), ("limits", limit), ("queues", governed)):
        body[kind] = [valid(value, f"{body['source']}-{i}") for i, value in enumerate(body.get(kind, [])[:3])]
    body.pop("layer", None)


def governed(value, name):
    """Makes the definition of a governed queue valid: its key is a path, and the keys of weights have no control characters."""
    value["name"] = name
    if "key" in value:
        value["key"] = "args.0"
    if "weights" in value:
        value["weights"] = {"customer-42": 3}
    return value


def limit(value, name):
    """Makes the definition of a limit valid: overrides need a limit per key, and a burst is at most the jobs of its rate."""
    value["name"] = name
    if value.get("overrides"):
        value["per"] = ["key"]
    for bound in (value, *value.get("overrides", {}).values()):
        if bound.get("rate"):
            bound["rate"].pop("burst", None)
    if value.get("queues"):
        value["queues"] = ["q0"]
    if "concurrency" not in value and not value.get("rate"):
        value["concurrency"] = 3
    return value


def periodic(job, name):
    """Makes the definition of a periodic job valid: it is complete, and has a cron expression or a number of seconds."""
    job["name"] = name
    if "every" in job:
        job.pop("cron", None)
        job["every"] = max(3600, job["every"])
    else:
        job["cron"] = "0 3 * * mon-fri"
    if "tz" in job:
        job["tz"] = "Europe/Stockholm"
    template = job.get("job") if isinstance(job.get("job"), dict) else {}
    job["job"] = {**template, "class": "Class1", "queue": "q0"}
    return job


def brief(case):
    """Shortens long requests: an event stream lasts an hour, and a lease may wait long."""
    waits = case.body.get("wait_ms") if isinstance(case.body, dict) else None
    if case.operation.path.endswith("/lease") and type(waits) is int and 0 < waits <= 20_000:
        case.body["wait_ms"] = waits % 5
    if case.operation.path == "/api/events":
        lasts = (case.query or {}).get("for", 3600)
        if re.fullmatch("[0-9]+", str(lasts)) and int(lasts) <= 3600:
            case.query = {**(case.query or {}), "for": 0}


def stay(case):
    """Keeps a parameter without a value in the URL, as empty.

    Without the parameter, an invalid request would be valid.
    """
    for name, value in list((case.query or {}).items()):
        if nothing(value):
            case.query[name] = ""


def nothing(value):
    if isinstance(value, (list, tuple)):
        return all(nothing(v) for v in value)
    return value is None or value == {}


def together(case):
    """Removes parameters that exclude each other."""
    if isinstance(case.body, list) and case.headers:
        drop(case.headers, "Idempotency-Key")
    if case.operation.path == "/api/next-ticks":
        either(case)
    query = case.query
    if not query:
        return
    a_list = "{jid}" not in case.operation.path
    if "format" in query:
        drop(query, "page", "page_size", "limit", "offset", "next", "sort")
    if "sort" in query:
        drop(query, "next")
    if "collapse" in query:
        drop(query, "jid", "operation")
    if "page" in query:
        drop(query, "limit", *(["offset"] if a_list else []))
    else:
        drop(query, "page_size")
    if "status" in query:
        drop(query, "failed")
    running = query.get("status") == "running"
    if running:
        drop(query, "error", "from", "to")
    if case.operation.path == "/api/jobs" and running != (str(query.get("next")).count(",") == 2):
        drop(query, "next")  # a place in the other list
    if "next" in query:
        drop(query, "offset")
    # A time range must be in order, and must not have too many steps.
    if case.operation.path.startswith(("/api/job-metrics", "/api/queue-throughput")):
        drop(query, "from", *(["step"] if "to" in query else []))


def either(case):
    """Has a schedule either a cron expression or a number of seconds."""
    query = case.query = case.query or {}
    if "tz" in query:
        query["tz"] = "Europe/Stockholm"
    if "cron" in query:
        query["cron"] = "0 3 * * mon-fri"
        drop(query, "every")
    elif "every" not in query:
        query["every"] = 60


def one_way(body):
    """Makes an operation valid: it has jids or a filter, and a set that its action allows."""
    if ("jids" in body) == ("filter" in body):
        body.pop("jids", None)
        body["filter"] = {"class": "Class1"}
    drop(body, "expected_count")  # random numbers are answered 412
    if body.get("action") == "trigger":
        body["set"] = "scheduled-jobs"
    elif (body.get("action"), body.get("set")) in {("kill", "dead-jobs"), ("change", "dead-jobs"), ("change", "gated-jobs")}:
        body["set"] = "retries"
    elif body.get("action") == "retry" and body.get("set") in ("scheduled-jobs", "gated-jobs"):
        body["set"] = "retries"
    if body.get("action") == "change":
        body["at"] = 4.1e9
    else:
        body.pop("at", None)


def deliverable(case):
    """Makes a message valid: its time and its body are given once, and texts of AMQP are short in bytes."""
    message = case.body
    if message.get("at") is None:
        message.pop("at", None)
        if message.get("in") is None:
            message["in"] = 60
        drop(case.headers or {}, "Idempotency-Key")
    else:
        message.pop("in", None)
    if message.get("body") is not None:
        message.pop("body_base64", None)
    if message.get("properties_base64") is not None:
        message["properties_base64"] = "AAA="  # no properties
    for fields in (message, message.get("properties") or {}):
        for name, value in fields.items():
            if isinstance(value, str) and name not in ("at", "body", "body_base64"):
                fields[name] = value[:60]
    headers = (message.get("properties") or {}).get("headers") or {}
    for name in [name for name, value in headers.items() if len(name) > 60 or not isinstance(value, str) or name in ("CC", "BCC")]:
        headers.pop(name)


def drop(query, *names):
    for name in names:
        query.pop(name, None)


def existing(case):
    """Replaces most random names by existing ones. The request decides which one, so that a run can be repeated."""
    parameters = case.path_parameters or {}
    path = case.operation.path
    n = zlib.crc32(repr((case.operation.label, parameters, case.query, case.body)).encode())
    if "queue" in parameters and len(unquote_to_bytes(parameters["queue"])) > 200:
        parameters["queue"] = "q0"  # the limit of a name is in bytes
    if path.startswith("/api/governed-queues/") and len(unquote_to_bytes(parameters["name"])) > 200:
        parameters["name"] = "gone"
    if path.endswith("/resubmit"):  # the valid body depends on the stream
        parameters["stream"] = "retries"
        case.body = RETRY
    if n % 4 == 0:
        return
    n //= 4
    if "jid" in parameters:
        parameters["jid"] = one_of(n, ("a", "b", "same", "a/b", "é", "0", "leased-3", LEASES[4])) if n % 2 else f"more-{n // 2 % 200}"
    elif "id" in parameters:
        parameters["id"] = one_of(n, LEASES if path.startswith("/api/leases") else OPERATIONS)
    elif "queue" in parameters:
        parameters["queue"] = f"gone-{n % 20}" if case.operation.label == "DELETE /api/job-queues/{queue}" else one_of(n, ("q0", "q1", "leased"))
    elif "class" in parameters:
        parameters["class"] = one_of(n, ("Class0", "Class1", "Class2"))
    elif "identity" in parameters:
        parameters["identity"] = one_of(n, ("host:1:w", "höst:2:a/b", "*"))
    elif "name" in parameters:
        parameters["name"] = one_of(n, ("nightly", "often", "gone"))
    elif "stream" in parameters:
        parameters["stream"], parameters["offset"] = "retries", one_of(n, REJECTED)


def one_of(n, known):
    return known[n % len(known)]
