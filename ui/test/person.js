// The tools of a signed-in user: elements by their role and name, a pointer, a keyboard, and the
// back button. They give no access to addresses, requests, selectors, test ids or the markup. So a
// user can do everything that a story does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { until } from './sidecar.js';

/**
 * @typedef {{clicks: number, keys: number}} Did what a user has done; a pasted text is one key, and
 *   so is a key with Ctrl
 */

/**
 * @param {import('playwright-core').Locator} at
 * @param {Did} did
 */
function thing(at, did) {
  const click = (/** @type {any} */ how = undefined) => {
    did.clicks++;
    return at.click(how);
  };
  /** Counts the click on a field that does not have the focus, and the key that selects its text. */
  const enter = async () => {
    const is = await at.evaluate((el) => ({ focused: el === document.activeElement, full: !!el.value }));
    if (!is.focused) did.clicks++;
    return is;
  };
  /**
   * Returns a point within the axes of a chart. It is drawn a moment after the rest of its page.
   * @param {number} part
   */
  const within = async (part) => {
    const inner = at.locator('.u-over');
    await inner.waitFor();
    const [whole, { y, height }] = [await at.boundingBox(), await inner.boundingBox()];
    return { x: whole.width * part, y: y - whole.y + height / 2 };
  };
  const text = async () => (await at.allInnerTexts()).join(' ').replace(/\s+/g, ' ').trim();
  return {
    /**
     * Returns an element in it.
     * @param {string} role
     * @param {string|RegExp} [name]
     * @param {any} [more]
     */
    find: (role, name, more) => thing(at.getByRole(role, { ...more, ...(name === undefined ? {} : { name }) }), did),
    nth: (/** @type {number} */ n) => thing(at.nth(n), did),
    first: () => thing(at.first(), did),
    last: () => thing(at.last(), did),
    click: () => click(),
    fill: async (/** @type {string} */ value) => {
      const { full } = await enter();
      did.keys += value.length + (full ? 1 : 0);
      await at.fill(value);
    },
    choose: (/** @type {string} */ option) => {
      did.clicks += 2; // one opens the options
      return at.selectOption(option);
    },
    check: () => {
      did.clicks++;
      return at.check();
    },
    uncheck: () => {
      did.clicks++;
      return at.uncheck();
    },
    press: async (/** @type {string} */ key) => {
      await enter();
      did.keys++;
      await at.press(key);
    },
    pointAt: () => at.hover(),
    /** Clicks at a part of a chart's width. @param {number} part */
    clickAt: async (part) => click({ position: await within(part) }),
    /**
     * Drags the pointer over a chart, from one part of its width to another.
     * @param {number} from
     * @param {number} to
     */
    drag: async (from, to) => {
      did.clicks++;
      await at.hover({ position: await within(from) }); // once it does not move
      const [box, { x, y }] = [await at.boundingBox(), await within(to)];
      const { mouse } = at.page();
      await mouse.down();
      await mouse.move(box.x + x, box.y + y, { steps: 8 });
      await mouse.up();
    },
    /** Waits until it is there, or is not. */
    seen: () => at.first().waitFor(),
    gone: () => until(`${at} is gone`, async () => await at.count() === 0),
    count: () => at.count(),
    text,
    texts: async () => (await at.allInnerTexts()).map((t) => t.replace(/\s+/g, ' ').trim()),
    value: () => at.inputValue(),
    disabled: () => at.isDisabled(),
    checked: () => at.isChecked(),
    /**
     * Returns what a screen reader says about it, beside its name.
     * @param {'pressed'|'expanded'|'selected'|'sort'|'valuenow'|'current'} state
     */
    state: (state) => at.getAttribute('aria-' + state),
    focused: () => until(`${at} has the focus`, () => at.evaluate((el) => el === document.activeElement)),
    /** Waits until its text matches, and returns the match. @param {RegExp} pattern */
    reads: async (pattern) => {
      let said = '';
      try {
        return await until('it reads ' + pattern, async () => {
          said = await text();
          return pattern.exec(said);
        });
      } catch (e) {
        throw new Error(`${at} does not read ${pattern} but “${said.slice(0, 600)}”`, { cause: e });
      }
    },
  };
}

/** @typedef {ReturnType<typeof person>} Person */

/**
 * @param {import('playwright-core').Page} page
 * @param {Did} did
 */
function person(page, did) {
  const whole = thing(page.locator('body'), did);
  return {
    find: whole.find,
    press: (/** @type {string} */ key) => {
      did.keys++;
      return page.keyboard.press(key);
    },
    type: (/** @type {string} */ text) => {
      did.keys += text.length;
      return page.keyboard.type(text);
    },
    /** Pastes a text that the user has copied elsewhere. @param {string} text */
    paste: async (text) => {
      did.keys++;
      await page.evaluate((t) => navigator.clipboard.writeText(t), text);
      await page.keyboard.press('ControlOrMeta+v');
    },
    back: () => {
      did.clicks++;
      return page.goBack();
    },
    /** Moves the pointer away, because rows do not move while it is over them. */
    pointAway: () => page.mouse.move(5, 5),
    /** Points at the notifications: then they stay, and rows may move. */
    pointAtNotes: () => whole.find('region', 'Notifications').pointAt(),
    /** Returns the address after the host. */
    address: () => page.url().replace(/^https?:\/\/[^/]+/, ''),
    /** Waits until the copied text matches, and returns the match. @param {RegExp} pattern */
    copied: (pattern) => until('copied is ' + pattern, async () => {
      const text = await page.evaluate(() => navigator.clipboard.readText());
      return pattern.test(text) && text;
    }),
    /** Saves a file, and returns its name. @param {() => Promise<any>} act */
    saves: async (act) => (await Promise.all([page.waitForEvent('download'), act()]))[0].suggestedFilename(),

    /** Opens a page through the navigation. @param {string} name */
    go: (name) => whole.find('navigation', 'Main').find('link', name).click(),
    /**
     * Adds a term to the list's filter, and waits until the list is no longer dim. Until then it
     * has the old rows.
     * @param {string} term
     */
    filter: async (term) => {
      const box = whole.find('combobox', /^Filter /);
      await box.fill(term);
      await box.press('Enter');
      await until('the list has answered', async () => await page.locator('[aria-busy="true"]').count() === 0);
    },
    /** The text below a list. */
    listed: whole.find('navigation', 'Pages of the list'),
    notes: whole.find('region', 'Notifications'),
    /** Closes the notifications that do not disappear by themselves. */
    tidy: async () => {
      const away = page.getByRole('region', { name: 'Notifications' }).getByRole('button', { name: 'Dismiss' });
      while (await away.count()) {
        did.clicks++;
        await away.first().click({ timeout: 1000 }).catch(() => {});
      }
      await page.mouse.move(5, 5); // the pointer is now over the element that was below
    },
    dialog: whole.find('dialog'),
    /** An operation that runs, in the corner. @param {RegExp|string} name */
    operation: (name) => whole.find('region', 'Notifications').find('group', name),
  };
}

/**
 * Signs a user in, and runs the story of the user. No error may occur meanwhile.
 * @param {any} world
 * @param {(me: Person) => Promise<void>} act
 * @param {{as?: [string, string], expected?: RegExp, name?: string, did?: Did, prepare?: (page: any)
 *   => Promise<void>}} [how] `prepare`: sets the scene; `did`: gets what the user has done
 */
export async function by(world, act, how = {}) {
  const { page, context, faults } = await open(world.browser, { permissions: ['clipboard-read', 'clipboard-write'], acceptDownloads: true });
  await signIn(page, world.base, ...(how.as || []));
  faults.length = 0; // the errors from before the sign-in
  await how.prepare?.(page);
  page.on('request', (r) => { if (r.isNavigationRequest()) faults.push('went to another document: ' + r.url()); });
  try {
    await act(person(page, how.did || { clicks: 0, keys: 0 }));
  } catch (e) {
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${(how.name || 'untold').replace(/\W+/g, '-').slice(0, 60)}.png` });
    throw e;
  }
  assert.deepEqual(faults.filter((f) => !how.expected?.test(f)), []);
  assert.deepEqual(await page.evaluate(() => window.refusals), []);
  await context.close();
}

/**
 * A test of a story of a signed-in user.
 * @param {any} world
 * @param {string} name
 * @param {(me: Person) => Promise<void>} act
 * @param {any} [how]
 */
export const story = (world, name, act, how) => test(name, () => by(world, act, { name, ...how }));

/** @param {{clicks: number, keys?: number}} did */
const said = ({ clicks, keys }) => [plural(clicks, 'click'), keys && plural(keys, 'key')].filter(Boolean).join(' and ');
/** @param {number} n @param {string} what */
const plural = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

/**
 * A test of a task, from the dashboard on. It reports the clicks and the keys of the user, and
 * fails if they are more than the task may take.
 * @param {any} world
 * @param {{name: string, most: {clicks: number, keys?: number}, scene?: (world: any) => any, act:
 *   (me: Person) => Promise<any>}} of `most`: any number of keys if none is given; `scene` is set
 *   before the user signs in; `act` may return something to report
 */
export const task = (world, { name, most, scene, act }) => test(name, async (t) => {
  const did = { clicks: 0, keys: 0 };
  let more = '';
  await scene?.(world);
  await by(world, async (me) => { more = await act(me) || ''; }, { name, did });
  t.diagnostic(`${name}: ${said(did)} (at most ${said(most)})${more}`);
  assert.ok(did.clicks <= most.clicks && did.keys <= (most.keys ?? Infinity), `${said(did)}, and not ${said(most)}`);
});
