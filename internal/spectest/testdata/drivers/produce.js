// Runs the producer's usage lines as the specification has them, then hangs up.
const { usage } = require('./specification.js');

async function produce() {
  const client = await usage();
  await client.channel.close(); // what was published is written before that
  await client.connection.close();
}

produce();
