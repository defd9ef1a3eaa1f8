import datetime
import os

import redis
import rq

store = redis.Redis.from_url(os.environ["REDIS_URL"])
queue = rq.Queue("mails", connection=store)
queue.enqueue("no_such_module.fail", job_id="rq-3")
rq.SimpleWorker([queue], connection=store).work(burst=True)
queue.enqueue("app.send_email", 9007199254740993, subject="Hello", job_id="rq-1")
queue.enqueue_at(datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc), "app.report", job_id="rq-2")
