import type { ClientMiddleware, OutgoingJob } from './types.js';

/** Publishes a job through middleware. Resolves to the job's jid, also where middleware returns something else; to '' if nothing was published. */
export async function throughMiddleware(middleware: readonly ClientMiddleware[], job: OutgoingJob, publish: () => Promise<string>): Promise<string> {
  let published: Promise<string> | undefined;
  const call = async (i: number): Promise<string> => {
    const wrapper = middleware[i];
    if (!wrapper) return (published = publish());
    await wrapper(job, () => call(i + 1));
    // An error that reaches this line was caught by middleware.
    return (await published?.catch(() => '')) ?? '';
  };
  return call(0);
}
