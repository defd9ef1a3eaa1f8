'use strict';

/** Of this library. Bundlers take the file along. */
const { version: VERSION } = require('../package.json');

module.exports = { VERSION };
