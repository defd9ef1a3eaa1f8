/** The module for Nest, for `import`. */
export { JobHandler, MillraceModule } from './nest.js';
export type * from './nest.js';
