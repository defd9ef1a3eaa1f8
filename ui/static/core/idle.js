// @ts-check
// Work that can wait until the page has been drawn.

/** Runs a function when the browser is idle. The result cancels that. @param {() => void} fn */
export function whenIdle(fn) {
  let off = false;
  // A flag instead of the id of a timer: tests replace the clock while a page is open, and an id of
  // the old clock is unknown to the new one.
  const run = () => { if (!off) fn(); };
  if (window.requestIdleCallback) requestIdleCallback(run, { timeout: 300 });
  else setTimeout(run, 50);
  return () => { off = true; };
}
