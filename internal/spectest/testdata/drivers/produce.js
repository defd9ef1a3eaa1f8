// Runs the usage lines of the producer as the specification prints them, and closes the connection.
const { usage } = require('./specification.js');

async function produce() {
  const client = await usage();
  await client.channel.close(); // all published messages are written before that
  await client.connection.close();
}

produce();
