import { serve } from './attachment.js';
import type { Engine } from './engine.js';
import { Session } from './session.js';
import { Pauses, pause, unwelcome } from '../connection.js';
import { messageOf } from '../errors.js';

/**
 * Runs an engine until the worker is stopped. Throws if the broker refuses the worker at its first
 * attempt. Everything else is tried again.
 */
export async function run(engine: Engine): Promise<void> {
  const { identity, queues, config } = engine;
  const concurrency = config.lanes.reduce((sum, lane) => sum + lane.concurrency, 0);
  engine.log('info', 'worker started', { version: config.library, identity, queues, concurrency });
  try {
    await connections(engine);
  } finally {
    engine.log('info', 'worker stopped', { identity });
  }
}

/** Works on one connection after the other. */
async function connections(engine: Engine): Promise<void> {
  const pauses = new Pauses();
  for (let first = true; !engine.stopped.is; ) {
    try {
      const session = await open(engine);
      if (!session) break;
      first = false;
      pauses.reset();
      engine.beat = () => session.beat();
      engine.writeEndsWith((key) => session.ledger.ended(key));
      for (const lane of engine.lanes) serve(lane, session);
      await session.run();
      return;
    } catch (error) {
      if (first && unwelcome(error)) throw new Error(`the broker turns us away: ${messageOf(error)}`, { cause: error });
      if (engine.stopped.is) break;
      engine.log('warn', 'no connection to the broker, trying again', { error: messageOf(error) });
    } finally {
      engine.beat = undefined;
    }
    await pause(pauses.next(), engine.stopped.promise);
  }
  await engine.wait();
  await engine.handBack();
  await engine.hook('shutdown');
}

/** Opens a session, or resolves to undefined if the worker stops meanwhile. */
function open(engine: Engine): Promise<Session | undefined> {
  return Promise.race([Session.open(engine), engine.stopped.promise]);
}
