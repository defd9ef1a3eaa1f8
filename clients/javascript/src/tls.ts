import { createSecureContext } from 'node:tls';
import { messageOf } from './errors.js';
import type { TlsOptions } from './types.js';

/** The options of tls.connect that a thread can be given. */
const NAMES = new Set([
  'ca', 'cert', 'key', 'passphrase', 'pfx', 'crl', 'servername', 'rejectUnauthorized', 'ciphers', 'sigalgs', 'minVersion', 'maxVersion',
]);

/**
 * Returns the TLS options, checked. Certificates and keys are read here, so that a wrong one is
 * refused now and not at each connection.
 */
export function tlsOptions(given: TlsOptions | undefined, urls: string[], scheme = 'amqps://'): TlsOptions | undefined {
  if (given === undefined) return undefined;
  const fail = (what: string, cause?: unknown): never => {
    throw new TypeError(`millrace: ${what}`, { cause });
  };
  if (typeof given !== 'object' || given === null) fail('tls is no object');
  for (const name of Object.keys(given)) if (!NAMES.has(name)) fail(`there is no option tls.${name}`);
  if (!urls.every((url) => url.startsWith(scheme))) fail(`tls options need an ${scheme} URL`);
  try {
    createSecureContext(given);
  } catch (error) {
    fail(`tls: ${messageOf(error)}`, error);
  }
  return given;
}
