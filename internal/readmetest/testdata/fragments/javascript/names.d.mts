// The names that the fragments in the JavaScript client's README use.
import * as millrace from 'millrace-jobs';
import * as fs from 'node:fs';

declare global {
  const Client: typeof millrace.Client;
  const Inspector: typeof millrace.Inspector;
  const Worker: typeof millrace.Worker;
  const readFileSync: typeof fs.readFileSync;

  const client: millrace.Client;
  const worker: millrace.Worker;
  const url: string;
  const order: number;
  const file: string;
  const error: millrace.Unconfirmed;
  const Sentry: { captureException(error: unknown, hint: { extra: Record<string, unknown> }): string };
  function currentToken(): Promise<string>;
  function save(text: string, options: { signal: AbortSignal }): Promise<void>;
}
