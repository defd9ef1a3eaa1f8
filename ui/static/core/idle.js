// @ts-check
// What can wait until what somebody looks at has been drawn.

/** Gives what calls it off. @param {() => void} fn */
export function whenIdle(fn) {
  if (!window.requestIdleCallback) {
    const timer = setTimeout(fn, 50);
    return () => clearTimeout(timer);
  }
  const idle = requestIdleCallback(fn, { timeout: 300 });
  return () => cancelIdleCallback(idle);
}
