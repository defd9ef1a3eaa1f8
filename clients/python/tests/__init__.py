"""Unit tests. Those of test_broker need RabbitMQ."""

import logging

# IsolatedAsyncioTestCase warns of each slow step, and test machines are busy.
logging.getLogger("asyncio").setLevel(logging.ERROR)
