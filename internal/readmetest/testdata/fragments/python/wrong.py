# pyright must report each call here: a comment that hides no error is an error itself.
from millrace_jobs import App, Client, Job, Worker

app = App("amqp://localhost")
worker = Worker("amqp://localhost")


@app.task(queue="orders")
async def ship(order: int, copies: int = 1) -> None: ...


ship.enqueue("seven")  # pyright: ignore[reportArgumentType]
ship.enqueue(7, copy=2)  # pyright: ignore[reportCallIssue]
ship.enqueue_in("soon", 7)  # pyright: ignore[reportArgumentType]
ship.options(priorty=9)  # pyright: ignore[reportCallIssue]
Client("amqp://localhost").enqueue("Ship", [7], priorty=9)  # pyright: ignore[reportCallIssue]
Client("amqp://localhost").publish_in(60, "orders", properties={"colour": "red"})  # pyright: ignore[reportArgumentType]


@worker.handle("Ship", timeout="30s")  # pyright: ignore[reportArgumentType]
def handle(job: Job) -> None:
    job.jids  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
