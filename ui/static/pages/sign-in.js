// @ts-check
import { html, useState } from '../core/h.js';
import { link, navigate, prefix, route } from '../core/router.js';
import { signIn, whoami } from '../core/session.js';
import { common } from '../core/words.js';
import { signIn as words } from '../core/pagewords.js';
import { assets } from '../parts/shell.js';

/** Returns the page to open after the sign-in. It is always a page of this UI. */
function target() {
  const to = route.value.query.get('to') || '';
  return /^[a-z]/.test(to) && !to.startsWith('sign-in') ? prefix + '/' + to : link('dashboard');
}

export default function SignIn() {
  const [token, setToken] = useState(false);
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (e) => {
    e.preventDefault();
    const form = new FormData(e.target);
    setBusy(true);
    setWrong('');
    try {
      await signIn(token ? { token: form.get('token') } : { name: form.get('name'), password: form.get('password') });
      navigate(target(), { replace: true });
    } catch (error) {
      setWrong(error.reason);
    }
    setBusy(false);
  };
  const flip = () => {
    setToken(!token);
    setWrong('');
  };
  if (whoami.value?.auth === 'none') navigate(target(), { replace: true });
  return html`<main class="sign" id="main" tabindex="-1"><form onSubmit=${submit} aria-label=${words.signIn}>
    <h1 class="brand"><img src=${assets + 'static/icon.svg'} alt="" width="36" height="36" />${common.millrace}</h1>
    ${token ? html`<label class="field" key="t"><span>${words.token}</span><input class="in" name="token" type="password" autocomplete="off" required autofocus /></label>`
      : html`<label class="field" key="n"><span>${common.name}</span><input class="in" name="name" autocomplete="username" required autofocus /></label>
        <label class="field" key="p"><span>${words.password}</span><input class="in" name="password" type="password" autocomplete="current-password" required /></label>`}
    ${wrong && html`<p class="bad" role="alert">${wrong}</p>`}
    <button class="btn primary" disabled=${busy}>${busy ? words.signingIn : words.signIn}</button>
    <p class="foot">${token ? words.useAnAccessToken : words.useYourAccount} <button type="button" class="linkish" onClick=${flip}>
      ${token ? words.useNameAndPassword : words.useAToken}</button></p>
  </form></main>`;
}
