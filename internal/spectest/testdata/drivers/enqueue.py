"""Calls section 4.2's producer: enqueue.py '[["enqueue", "Class", [args], "queue", 25], ["schedule", "Class", [args], seconds], ...]'"""
import json, sys, time
from specification import client

for method, job_class, args, *more in json.loads(sys.argv[1]):
    if method == "schedule":
        more[0] += time.time()
    getattr(client, method)(job_class, args, *more)
client.connection.close()
