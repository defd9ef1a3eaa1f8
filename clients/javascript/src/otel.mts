/** OpenTelemetry for `import`. */
export { traceClient, traceWorker } from './otel.js';
export type * from './otel.js';
