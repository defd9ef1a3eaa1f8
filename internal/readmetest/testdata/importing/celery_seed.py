import datetime
import os

import celery

app = celery.Celery(broker=os.environ["REDIS_URL"])
app.send_task("app.send_email", args=[9007199254740993], kwargs={"subject": "Hello"}, task_id="celery-1")
app.send_task("app.send_email", args=[2], task_id="celery-2", priority=9)
app.send_task("app.report", task_id="celery-3", eta=datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc))
