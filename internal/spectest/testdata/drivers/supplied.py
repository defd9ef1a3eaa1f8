"""The two functions that section 3.3 calls and leaves to the reader, and the jobs."""
import json, random, time

# With this seed, the backoff of a first failure is the shortest possible one.
SEED = next(s for s in range(10_000) if random.Random(s).randint(0, 30) == 0)

failed = set()


def send_email(email, message):
    print(f"Sending email to {email}: {message}")


def flaky(name):
    if name not in failed:
        failed.add(name)
        random.seed(SEED)
        raise RuntimeError("not the first time")
    print(f"FlakyJob ran: {name}")


def broken(name):
    print(f"BrokenJob fails: {name}")
    raise ValueError("never works")


def counted(number):
    print(f"begins {time.time():.6f} {number}")
    time.sleep(0.3)
    print(f"ends {time.time():.6f} {number}")


jobs = {"SendEmailJob": send_email, "FlakyJob": flaky, "BrokenJob": broken, "CountedJob": counted}


def execute_job_class(job_class, args):
    jobs[job_class](*args)


def publish_to_dead_queue(channel, job, error):
    dead = {
        "type": "dead_job",
        "jid": job["jid"],
        "died_at": time.time(),
        "retry_count": job.get("retry_count", 0),
        "error_message": str(error),
        "error_class": error.__class__.__name__,
        "job": job,
    }
    channel.basic_publish("", "dead_jobs", json.dumps(dead))
