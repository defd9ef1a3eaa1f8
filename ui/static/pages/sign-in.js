// @ts-check
import { html, useState } from '../core/h.js';
import { link, navigate, prefix, route } from '../core/router.js';
import { signIn, whoami } from '../core/session.js';
import { assets } from '../parts/shell.js';

/** Leads only to pages of this UI. */
function target() {
  const to = route.value.query.get('to') || '';
  return /^[a-z]/.test(to) && !to.startsWith('sign-in') ? prefix + '/' + to : link('dashboard');
}

export default function SignIn() {
  const [token, setToken] = useState(false);
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (/** @type {any} */ e) => {
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
  if (whoami.value?.auth === 'none') navigate(target(), { replace: true });
  return html`<main class="sign" id="main" tabindex="-1" style=${{ margin: 0 }}><form onSubmit=${submit} aria-label="Sign in">
    <h1 class="brand"><img src=${assets + 'static/icon.svg'} alt="" width="36" height="36" />Millrace</h1>
    ${token ? html`<label class="field" key="t"><span>Token</span><input class="in" name="token" type="password" autocomplete="off" required autofocus /></label>`
      : html`<label class="field" key="n"><span>Name</span><input class="in" name="name" autocomplete="username" required autofocus /></label>
        <label class="field" key="p"><span>Password</span><input class="in" name="password" type="password" autocomplete="current-password" required /></label>`}
    ${wrong && html`<p class="bad" role="alert">${wrong}</p>`}
    <button class="btn primary" disabled=${busy}>${busy ? 'Signing in …' : 'Sign in'}</button>
    <p class="foot">${token ? 'Use an access token.' : 'Use your RabbitMQ or LavinMQ account.'} <button type="button" class="linkish" onClick=${() => { setToken(!token); setWrong(''); }}>${token ? 'Use name and password' : 'Use a token'}</button></p>
  </form></main>`;
}
