import type { ClientMiddleware, OutgoingJob } from './types.js';

/**
 * Publishes a job through middleware. Resolves to the job's jid, regardless of the middleware's
 * result, or to '' if nothing was published.
 */
export async function throughMiddleware(middleware: readonly ClientMiddleware[], job: OutgoingJob, publish: () => Promise<string>): Promise<string> {
  let published: Promise<string> | undefined;
  const call = async (i: number): Promise<string> => {
    const wrapper = middleware[i];
    if (!wrapper) return (published = publish());
    await wrapper(job, () => call(i + 1));
    // If the publish failed, middleware has caught the error.
    return (await published?.catch(() => '')) ?? '';
  };
  return call(0);
}
