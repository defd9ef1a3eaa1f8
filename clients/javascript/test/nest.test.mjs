// The module for Nest, in applications of the framework. Decorators are called, because this is no
// TypeScript.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Inject, Injectable, Module, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Client, Worker, defineJob } from 'millrace-jobs';
import { JobHandler, MillraceModule } from 'millrace-jobs/nest';
import { Fake } from 'millrace-jobs/testing';

const decorate = (type, method, decorator) => decorator(type.prototype, method, Object.getOwnPropertyDescriptor(type.prototype, method));
const report = defineJob('Report', { queue: 'reports' });

class Outbox {
  sent = [];
}
Injectable()(Outbox);

class Mails {
  constructor(outbox, client) {
    this.outbox = outbox;
    this.client = client;
  }

  async send(job) {
    this.outbox.sent.push(job.args[0]);
    if (job.args[0] === 'Ann') await this.client.enqueue(report, [1]);
  }

  report(job) {
    this.outbox.sent.push(`report of ${job.queue}`);
  }

  other() {}
}
Injectable()(Mails);
Inject(Outbox)(Mails, undefined, 0);
Inject(Client)(Mails, undefined, 1);
decorate(Mails, 'send', JobHandler('SendEmail', { timeout: 30 }));
decorate(Mails, 'report', JobHandler(report));

class Quiet extends Worker {}

test('handlers are found, and have what is injected', async () => {
  const fake = new Fake(new Quiet({ url: 'amqp://localhost', logger: false }));
  const testing = await Test.createTestingModule({
    imports: [MillraceModule.forRoot({ url: 'amqp://localhost', run: false, worker: { logger: false } })], providers: [Outbox, Mails],
  }).overrideProvider(Client).useValue(fake).compile();
  const app = await testing.init();
  const drained = new Fake(app.get(Worker));
  await drained.enqueue('SendEmail', ['Ann']);
  assert.equal(await drained.drain(), 1);
  assert.deepEqual(app.get(Outbox).sent, ['Ann']);
  assert.deepEqual(fake.jobs(report).map((job) => [job.class, job.queue]), [['Report', 'reports']], 'the client can be replaced');
  await drained.enqueue(report, [1]);
  await drained.drain();
  assert.deepEqual(app.get(Outbox).sent, ['Ann', 'report of reports']);
  await app.close();
});

test('options can come from a factory, and modules share client and worker', async () => {
  class Settings {
    url = 'amqp://broker.example/jobs';
  }
  class Inner {
    constructor(client) {
      this.client = client;
    }
  }
  Injectable()(Inner);
  Inject(Client)(Inner, undefined, 0);
  class InnerModule {}
  Module({ providers: [Inner] })(InnerModule);
  class SettingsModule {}
  Module({ providers: [Settings], exports: [Settings] })(SettingsModule);
  const app = await Test.createTestingModule({
    imports: [InnerModule, MillraceModule.forRootAsync({ imports: [SettingsModule], inject: [Settings], useFactory: async ({ url }) => ({ url, run: false }) })],
  }).compile();
  assert.equal(app.get(Inner, { strict: false }).client, app.get(Client));
  await app.close();
});

test('a handler cannot be request-scoped', async () => {
  class Scoped {
    run() {}
  }
  Injectable({ scope: Scope.REQUEST })(Scoped);
  decorate(Scoped, 'run', JobHandler('Run'));
  const testing = await Test.createTestingModule({ imports: [MillraceModule.forRoot({ run: false })], providers: [Scoped] }).compile();
  await assert.rejects(testing.init(), /Scoped has the handler of Run, so it cannot be request-scoped/);
});

test('a method can handle several classes, and an alias adds nothing', async () => {
  class Several {
    run(job) {
      return job.class;
    }
  }
  Injectable()(Several);
  decorate(Several, 'run', JobHandler('One'));
  decorate(Several, 'run', JobHandler('Two'));
  const app = await Test.createTestingModule({
    imports: [MillraceModule.forRoot({ run: false })], providers: [Several, { provide: 'alias', useExisting: Several }],
  }).compile();
  await app.init();
  const fake = new Fake(app.get(Worker));
  await fake.enqueue('One');
  await fake.enqueue('Two');
  assert.equal(await fake.drain(), 2);
  await app.close();
});

test('an application without handlers takes no jobs', async () => {
  const logger = { info: assert.fail, warn: assert.fail, error: assert.fail };
  const app = await Test.createTestingModule({ imports: [MillraceModule.forRoot({ url: 'amqp://guest:guest@127.0.0.1:1/', worker: { logger } })] }).compile();
  await app.init();
  await new Promise((resolve) => setTimeout(resolve, 200)); // a worker would have tried to connect
  await app.close();
});

test('the worker runs with the application, and stops with it', async () => {
  const lines = [];
  const logger = { info: (text) => lines.push(text), warn: (text) => lines.push(text), error() {} };
  const testing = await Test.createTestingModule({
    imports: [MillraceModule.forRoot({ url: 'amqp://guest:guest@127.0.0.1:1/', worker: { logger } })], providers: [Outbox, Mails],
  }).compile();
  const app = await testing.init();
  while (!lines.length) await new Promise((resolve) => setTimeout(resolve, 10)); // it tries to connect
  await app.close();
  assert.throws(() => app.get(Worker).handle('Late', () => {}), 'it has run');
});
