// Package auth decides who may use the API: users and their roles, sessions, and the host names,
// origins and addresses from which requests may come.
//
// # Promises
//
// Names and passwords are the broker's. They are asked for at its management API, and an answer is
// believed for 30 seconds. No password is kept except in the sealed cookie of a browser's session,
// so that every sidecar with the same key can ask the broker again. The cache holds keyed hashes.
//
// Other machines can connect only where users are authenticated, over TLS or behind a proxy.
// Requests that a browser sends for another site are refused, on loopback too, and so are requests
// under a host name that is not expected (DNS rebinding).
//
// Logins that fail are limited by name and by address. A password that was right a short while ago
// is no attempt, so guessing does not lock a user out who is signed in.
//
// With ModeHeader, a proxy authenticates users, and names each in a header. The header counts only
// with the proxy's signature, which covers the method and the target of the request and its time.
//
// # Failures
//
// While the management API does not answer, a password that was right in the last ten minutes still
// is; other logins get 503. While the tokens file cannot be read, all tokens get 503. A certificate
// that cannot be read leaves the one that was read before.
package auth
