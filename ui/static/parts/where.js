// @ts-check
/** Where this sidecar is, for what people copy into a terminal. */
export const location = globalThis.location.origin;
