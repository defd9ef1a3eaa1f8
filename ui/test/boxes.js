// Runs in the page: finds what is wider than the page, cut without a sign of it, covered by
// something else, or not aligned with the header.
export async function overflow() {
  await document.fonts.ready;
  const wrong = [];
  const name = (el) => `${el.tagName} “${el.textContent.trim().slice(0, 40)}”`;
  if (document.documentElement.scrollWidth > innerWidth) {
    const widest = [...document.querySelectorAll('main *')].filter((el) => !el.closest('.scroll, .sr') && el.getBoundingClientRect().right > innerWidth + 1).at(-1);
    wrong.push(`the page is ${document.documentElement.scrollWidth} wide${widest ? ', for ' + name(widest) : ''}`);
  }
  const nav = document.querySelector('nav.side')?.getBoundingClientRect();
  const beside = nav && nav.height > nav.width ? nav.right : 0; // on phones it is a bar below
  const header = document.querySelector('header.top');
  const content = document.querySelector('main > .page')?.getBoundingClientRect();
  if (header && content) {
    const window = header.getBoundingClientRect();
    const [left, right] = [content.left - beside, window.right - content.right];
    const [first, last] = [header.firstElementChild.getBoundingClientRect().left, window.right - header.lastElementChild.getBoundingClientRect().right];
    if (Math.abs(left - right) > 1) wrong.push(`the gutters are ${left} and ${right} pixels`);
    if (content.width < 1720 && Math.abs(right - last) > 1) wrong.push(`the content ends ${right} pixels from the edge, the header ${last}`);
    if (!beside && Math.abs(left - first) > 1) wrong.push(`the content begins at ${left}, the header at ${first}`);
    for (const el of document.querySelectorAll('main > .page > :is(section, .grid, .stack, .title, .banner, .tabs)')) {
      const r = el.getBoundingClientRect();
      if (r.width && (Math.abs(r.left - content.left) > 1 || Math.abs(r.right - content.right) > 1)) wrong.push(`${name(el)} does not keep to the gutter`);
    }
  }
  // The elements that it covers cannot be reached.
  const dialog = document.querySelector('dialog[open]');
  const known = new Map();
  const edges = (box) => known.get(box) || known.set(box, { overflowX: getComputedStyle(box).overflowX, b: box.getBoundingClientRect() }).get(box);
  // Everything that can be clicked must be completely visible: within the window, and within the
  // elements that cut or scroll it.
  for (const el of document.querySelectorAll(dialog ? 'dialog[open] :is(button, a.btn, select, input)' : 'main :is(button, a.btn, select, input), header :is(button, a), .toasts button')) {
    const r = el.getBoundingClientRect();
    if (!r.width || getComputedStyle(el).visibility === 'hidden' || el.closest('.sr')) continue;
    for (let box = el.parentElement; box && box !== document.body; box = box.parentElement) {
      const { overflowX, b } = edges(box);
      if (overflowX === 'visible' || /^(auto|scroll)$/.test(overflowX) && !el.closest('.acts')) {
        if (overflowX !== 'visible') break; // the user can scroll to it
        continue;
      }
      if (r.right > b.right + 1 || r.left < b.left - 1) wrong.push(`${el.ariaLabel || name(el)} is cut off by ${box.tagName}.${box.className}`);
    }
    if (el.closest('.acts, .tools, .ends, dialog') && (r.right > innerWidth + 1 || r.left < (dialog ? 0 : beside) - 1)
      && !el.closest('.seg, .tabs')) wrong.push(`${el.ariaLabel || name(el)} is cut off`);
  }
  for (const cell of document.querySelectorAll('main table.t tbody :is(td, th):not(.acts)')) {
    if (cell.scrollWidth > cell.clientWidth + 1) wrong.push(`${name(cell)} runs over its cell`);
  }
  const boxes = [];
  const parts = 'main :is(h1, h2, button, a.btn, input, select), dialog[open] :is(h2, button, input), .counters :is(dd, dt), header *, nav.side a, .badge, .pill, .tag';
  for (const el of document.querySelectorAll(parts)) {
    const r = el.getBoundingClientRect();
    const style = getComputedStyle(el);
    if (!r.width || !r.height || style.position === 'absolute' || style.visibility === 'hidden' || el.closest('.sr, .cut, .code, svg, [aria-hidden=true]')) continue;
    const scrolls = el.closest('.scroll, .tabs, .seg, .feed') || (!beside && el.closest('nav.side'));
    if (!scrolls && el.scrollWidth > el.clientWidth + 1 && style.display !== 'inline' && style.textOverflow !== 'ellipsis' && el.clientWidth
      && !/INPUT|SELECT/.test(el.tagName)) wrong.push(`${name(el)} is cut`);
    if (!scrolls && r.right > innerWidth + 1) wrong.push(`${name(el)} sticks out`);
    if (/^(BUTTON|INPUT|SELECT|H1|H2)$/.test(el.tagName) && !el.closest('header, nav') && (!dialog || dialog.contains(el))) boxes.push([el, r]);
  }
  for (let i = 0; i < boxes.length && boxes.length < 400; i++) {
    for (let j = i + 1; j < boxes.length; j++) {
      const [[a, p], [b, q]] = [boxes[i], boxes[j]];
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 1 && high > 1 && !a.contains(b) && !b.contains(a)) wrong.push(`${name(a)} lies on ${name(b)}`);
    }
  }
  return wrong.slice(0, 10);
}
