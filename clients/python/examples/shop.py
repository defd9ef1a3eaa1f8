"""A small web shop.

A request enqueues the payment, which is retried while the bank is busy. A day later, the customer
gets an e-mail.

It needs a broker and Millrace (``make up``). The web server and the worker are two programs::

    python shop.py                                                        # the server, on port 8000
    python -m millrace_jobs worker shop:worker                            # the worker
    curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
    curl http://127.0.0.1:8000/orders/1                                   # its state
"""

import json
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from millrace_jobs import App, Error, Job, Worker, current_job

logging.basicConfig(level=logging.INFO)
logging.getLogger("pika").setLevel(logging.CRITICAL)

BROKER = os.environ.get("MILLRACE_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")
DATABASE = os.environ.get("SHOP_DATABASE", "shop.db")
PORT = int(os.environ.get("SHOP_PORT", "8000"))
A_DAY = 24 * 3600

app = App(BROKER, timeout=2)  # a request waits at most 2 seconds for the broker


@contextmanager
def database() -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction."""
    connection = sqlite3.connect(DATABASE, timeout=10)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, email TEXT, paid INTEGER DEFAULT 0, mailed INTEGER DEFAULT 0)"
    )
    try:
        with connection:  # commits, or rolls back
            yield connection
    finally:
        connection.close()


class BankBusy(Exception):
    """Raised when the bank takes no payments at the moment."""


def seconds_until_retry(count: int, error: BaseException, _job: Job) -> float | None:
    """Return a short wait while the bank is busy. Other errors have the default backoff."""
    return min(2.0**count, 600) if isinstance(error, BankBusy) else None


@app.task("Charge", queue="payments", retry=10, timeout=30, retry_in=seconds_until_retry)
def charge(number: int) -> None:
    """Pay an order. A job may run twice, so it first checks whether the order is paid."""
    with database() as orders:
        (paid,) = orders.execute("SELECT paid FROM orders WHERE number = ?", [number]).fetchone()
    if paid:
        return
    ask_bank(number)
    ask_for_review.enqueue_in(A_DAY, number)
    with database() as orders:
        orders.execute("UPDATE orders SET paid = 1 WHERE number = ?", [number])
    logging.info("order %d is paid", number)


def ask_bank(number: int) -> None:
    """Stand for a bank that is busy at first.

    A real bank gets the order's number, so that it takes each payment once.
    """
    if current_job().attempt == 1:
        raise BankBusy(f"order {number}: try again later")


@app.task("AskForReview", queue="mail", retry=5)
def ask_for_review(number: int) -> None:
    """Send the e-mail that asks for a review.

    It marks the order first, because no e-mail is better than two.
    """
    with database() as orders:
        found = orders.execute("UPDATE orders SET mailed = 1 WHERE number = ? AND mailed = 0 RETURNING email", [number]).fetchone()
    if found:
        logging.info("e-mail to %s about order %d", found[0], number)


worker = app.register(Worker(BROKER, queues=["payments", "mail"], concurrency=5))


class Web(BaseHTTPRequestHandler):
    """Handles the web server's requests: POST /orders and GET /orders/{number}."""

    def do_POST(self) -> None:
        """Take an order."""
        try:
            email = str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["email"])
        except (ValueError, TypeError, KeyError):
            self.answer(400, {"error": 'the body must be JSON with an "email"'})
            return
        with database() as orders:
            number = orders.execute("INSERT INTO orders (email) VALUES (?)", [email]).lastrowid
        assert number is not None
        try:
            charge.enqueue(number)  # after the commit, so that the worker finds the order
        except Error as e:
            # A real shop enqueues such orders later.
            logging.error("order %d waits for its payment: %s", number, e)
            self.answer(503, {"order": number, "error": "we cannot take payments at the moment"})
            return
        self.answer(202, {"order": number})

    def do_GET(self) -> None:
        """Show an order."""
        number = self.path.removeprefix("/orders/")
        with database() as orders:
            found = orders.execute("SELECT paid, mailed FROM orders WHERE number = ?", [number]).fetchone()
        if found:
            self.answer(200, {"paid": bool(found[0]), "mailed": bool(found[1])})
        else:
            self.answer(404, {"error": f"there is no order {number}"})

    def answer(self, status: int, body: dict[str, object]) -> None:
        """Send JSON."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Web).serve_forever()
