// @ts-check
/** The address of this sidecar, for commands that people copy. */
export const location = globalThis.location.origin;
