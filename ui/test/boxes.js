// Runs in the page: what is wider than it, or cut without saying so, or lies on something else.
export async function overflow() {
  await document.fonts.ready;
  const wrong = [];
  const name = (el) => `${el.tagName} “${el.textContent.trim().slice(0, 40)}”`;
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const boxes = [];
  for (const el of document.querySelectorAll('main h1, main h2, main button, main a.btn, main input, main select, .counters dd, .counters dt, header *, nav.side a, .badge, .pill, .tag')) {
    const r = el.getBoundingClientRect();
    const style = getComputedStyle(el);
    if (!r.width || !r.height || style.position === 'absolute' || style.visibility === 'hidden' || el.closest('.sr, .cut, .code, svg, [aria-hidden=true]')) continue;
    const scrolls = el.closest('.scroll, .tabs, .feed');
    if (!scrolls && el.scrollWidth > el.clientWidth + 1 && style.display !== 'inline' && style.textOverflow !== 'ellipsis' && el.clientWidth && !/INPUT|SELECT/.test(el.tagName)) wrong.push(`${name(el)} is cut`);
    if (!scrolls && r.right > innerWidth + 1) wrong.push(`${name(el)} sticks out`);
    if (/^(BUTTON|INPUT|SELECT|H1|H2)$/.test(el.tagName) && !el.closest('header, nav')) boxes.push([el, r]);
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
