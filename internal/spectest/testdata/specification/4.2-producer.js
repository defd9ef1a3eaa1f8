const amqp = require('amqplib');

class JobClient {
  constructor(amqpUrl) {
    this.connection = null;
    this.channel = null;
    this.amqpUrl = amqpUrl;
  }

  async connect() {
    this.connection = await amqp.connect(this.amqpUrl);
    this.channel = await this.connection.createChannel();
  }

  async enqueue(jobClass, args, queue = 'default', retry = 25) {
    const job = {
      jid: crypto.randomUUID().replace(/-/g, ''),
      class: jobClass,
      args: args,
      queue: queue,
      retry: retry,
      retry_count: 0,
      enqueued_at: Date.now() / 1000
    };

    await this.channel.publish(
      'jobs.direct',
      queue,
      Buffer.from(JSON.stringify(job)),
      { persistent: true }
    );

    return job.jid;
  }

  async schedule(jobClass, args, scheduledAt, queue = 'default') {
    const scheduledJob = {
      type: 'scheduled_job',
      jid: crypto.randomUUID().replace(/-/g, ''),
      scheduled_at: scheduledAt,
      job: {
        class: jobClass,
        args: args,
        queue: queue,
        retry: 25,
        enqueued_at: Date.now() / 1000
      }
    };

    await this.channel.sendToQueue(
      'scheduled_jobs',
      Buffer.from(JSON.stringify(scheduledJob)),
      { persistent: true }
    );
  }
}

// Usage
const client = new JobClient('amqp://localhost');
await client.connect();
await client.enqueue('SendEmailJob', ['user@example.com', 'Hello!']);
await client.schedule('SendReminderJob', [123], Date.now() / 1000 + 3600);
