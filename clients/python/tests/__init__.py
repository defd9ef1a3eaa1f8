"""Unit tests; those of test_broker need RabbitMQ."""

import logging

logging.getLogger("asyncio").setLevel(logging.ERROR)  # IsolatedAsyncioTestCase warns of each slow step, and machines are busy
