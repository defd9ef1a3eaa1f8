'use strict';

const { createSecureContext } = require('node:tls');

/** Options of tls.connect that a thread can be given. */
const NAMES = new Set([
  'ca', 'cert', 'key', 'passphrase', 'pfx', 'crl', 'servername', 'rejectUnauthorized', 'ciphers', 'sigalgs', 'minVersion', 'maxVersion',
]);

/** TLS options, checked: certificates and keys are read, so that a wrong one is refused here, not at each connection. */
function tlsOptions(given, urls, scheme = 'amqps://') {
  if (given === undefined) return undefined;
  const fail = (what, cause = undefined) => {
    throw new TypeError(`millrace: ${what}`, { cause });
  };
  if (typeof given !== 'object' || given === null) fail('tls is no object');
  for (const name of Object.keys(given)) if (!NAMES.has(name)) fail(`there is no option tls.${name}`);
  if (!urls.every((url) => url.startsWith(scheme))) fail(`tls options need an ${scheme} URL`);
  try {
    createSecureContext(given);
  } catch (error) {
    fail(`tls: ${error.message}`, error);
  }
  return given;
}

module.exports = { tlsOptions };
