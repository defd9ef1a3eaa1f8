// @ts-check
// Work that can wait until what is looked at has been drawn.

/** Runs a function when the browser is idle, unless what it returns is called first. @param {() => void} fn */
export function whenIdle(fn) {
  let off = false;
  // A flag, for an id of one clock means nothing to another: tests replace the clock under a page that is open.
  const run = () => { if (!off) fn(); };
  if (window.requestIdleCallback) requestIdleCallback(run, { timeout: 300 });
  else setTimeout(run, 50);
  return () => { off = true; };
}
