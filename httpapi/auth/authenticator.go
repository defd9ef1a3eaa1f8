package auth

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// Modes of authentication.
const (
	ModeBroker = "broker" // the broker's users
	ModeToken  = "token"  // tokens of a file
	ModeHeader = "header" // a proxy authenticates users, and signs who they are
	ModeNone   = "none"   // users are not authenticated
)

// Config configures an Authenticator. All functions must be set.
type Config struct {
	Mode        string // default: see Authenticator.Mode
	HasUsers    func() HasUsers
	Identify    func(ctx context.Context, name, password string) (User, error)
	TokensFile  string // for ModeToken
	HeaderKey   []byte // for ModeHeader
	SessionKey  []byte // a secret; default: a new one
	CookiePath  string // of sessions
	Exposed     bool   // users of other machines can connect
	BehindProxy bool   // X-Forwarded-For and -Proto are believed
	ReadOnly    bool   // no request may change anything

	Now func() time.Time
	Log *slog.Logger
}

// Authenticator finds out who sent a request, and admits it to a route or refuses it.
type Authenticator struct {
	cfg     Config
	seal    *seal
	tokens  *tokenFile
	signer  *signer
	cache   *credentialCache
	limiter *loginLimiter
}

// New returns an Authenticator. It reads no file and sends no request yet.
func New(cfg Config) *Authenticator {
	return &Authenticator{
		cfg: cfg, seal: newSeal(cfg.SessionKey), tokens: newTokenFile(cfg.TokensFile, cfg.Now), signer: &signer{cfg.HeaderKey, cfg.Now},
		cache: newCredentialCache(cfg.Identify, cfg.Now), limiter: newLoginLimiter(),
	}
}

// Mode returns the mode that counts now. Without a configured one it is ModeBroker, unless there is
// no management API and only this machine can connect. Once there was one, ModeBroker stays.
func (a *Authenticator) Mode() (string, error) {
	if a.cfg.Mode != "" {
		return a.cfg.Mode, nil
	}
	switch has := a.cfg.HasUsers(); {
	case has == UsersPresent || a.cfg.Exposed:
		return ModeBroker, nil
	case has == UsersUnsettled:
		return "", problem.Unavailable(nil, "the broker has not been reached yet, so it is not known who may come in")
	}
	return ModeNone, nil
}

// Admit returns a handler that calls next for the requests of users who have the access.
func (a *Authenticator) Admit(needs Access, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if needs == Open {
			return next(c)
		}
		p, err := a.identify(c.Request())
		if err != nil {
			challenge(c, err)
			return err
		}
		problem.InfoOf(c.Request()).User = p.Name
		if !p.Role.Allows(needs) {
			role := string(p.Role)
			if p.Role == NoRole {
				role = "a user without a tag"
			}
			return problem.New(http.StatusForbidden, "%s may not do this: it needs %s", role, needs.roles())
		}
		if !a.May(p, needs) {
			return problem.New(http.StatusForbidden, "this sidecar is read-only: nothing can be changed through it")
		}
		c.SetRequest(withPrincipal(c.Request(), p))
		return next(c)
	}
}

// May reports whether a principal has an access through this sidecar.
func (a *Authenticator) May(p Principal, needs Access) bool {
	return p.Role.Allows(needs) && (needs <= Read || !a.cfg.ReadOnly)
}

// MayStillRead reports whether a user who was admitted may still read, or cannot be asked for now.
func (a *Authenticator) MayStillRead(r *http.Request) bool {
	p, err := a.identifyAged(r, eventsAge)
	if err != nil {
		return problem.From(err).Status != http.StatusUnauthorized
	}
	return p.Role.Allows(Read)
}

// challenge asks programs for a name and password. It leaves a browser's pages alone: the browser
// would open a window of its own, and send what was typed there along for ever.
func challenge(c echo.Context, err error) {
	if problem.From(err).Status != http.StatusUnauthorized || c.Request().Header.Get("Sec-Fetch-Mode") != "" {
		return
	}
	c.Response().Header().Set("WWW-Authenticate", `Basic realm="Millrace", charset="UTF-8"`)
}

// identify returns the principal of a request: by the header Authorization, else by the session.
func (a *Authenticator) identify(r *http.Request) (Principal, error) {
	return a.identifyAged(r, headerAge)
}

// identifyAged is identify for a request whose signed header may be so old.
func (a *Authenticator) identifyAged(r *http.Request, age time.Duration) (Principal, error) {
	mode, err := a.Mode()
	if err != nil {
		return Principal{}, err
	}
	switch mode {
	case ModeNone:
		return anonymous, nil
	case ModeHeader:
		return a.bySignature(r, age)
	}
	if header := r.Header.Get("Authorization"); header != "" {
		return a.byHeader(r, mode)
	}
	cookies := r.CookiesNamed(sessionCookie) // other servers on this host may set some
	for _, c := range cookies {
		if s, err := a.seal.open(c.Value, a.cfg.Now()); err == nil && s.Auth == mode {
			return a.bySession(r, s)
		}
	}
	if len(cookies) > 0 {
		return Principal{}, unauthorized("the session has ended: sign in again")
	}
	return Principal{}, unauthorized("sign in: %s", howTo[mode])
}

func unauthorized(format string, args ...any) error {
	return problem.New(http.StatusUnauthorized, format, args...)
}

var howTo = map[string]string{
	ModeBroker: "with the name and password of a user of the broker",
	ModeToken:  "with a token (Authorization: Bearer …)",
	ModeHeader: "at the proxy through which this API is reached",
}

// bySignature returns the principal whom the proxy names. Nothing else in a request counts.
func (a *Authenticator) bySignature(r *http.Request, age time.Duration) (Principal, error) {
	if r.Header.Get(SignedHeader) == "" {
		return Principal{}, unauthorized("sign in %s", howTo[ModeHeader])
	}
	p, err := a.signer.find(r, age)
	if err != nil {
		return Principal{}, unauthorized("%s", err)
	}
	return p, nil
}

func (a *Authenticator) byHeader(r *http.Request, mode string) (Principal, error) {
	if name, password, ok := r.BasicAuth(); ok {
		if mode == ModeToken {
			return a.byToken(r, sumOf(password), name, viaBasic)
		}
		return a.byPassword(r, name, password, viaBasic)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if mode == ModeToken && strings.EqualFold(scheme, "Bearer") {
		return a.byToken(r, sumOf(strings.TrimSpace(token)), "", viaBearer)
	}
	return Principal{}, unauthorized("this Authorization is not understood: sign in %s", howTo[mode])
}

func (a *Authenticator) bySession(r *http.Request, s session) (p Principal, err error) {
	if s.Auth == ModeToken {
		p, err = a.byToken(r, s.TokenSum, s.Name, viaSession)
	} else {
		p, err = a.byPassword(r, s.Name, s.Password, viaSession)
	}
	p.Ends = s.Ends
	return p, err
}

// byToken returns the principal of a token. A name that is given must be the token's.
func (a *Authenticator) byToken(r *http.Request, sum, name, via string) (Principal, error) {
	p, ok, err := a.tokens.find(sum)
	if err != nil {
		return Principal{}, problem.Unavailable(err, "the tokens' file cannot be read: the log says why")
	}
	if ok && (name == "" || name == p.Name) {
		p.Via = via
		return p, nil
	}
	addr := block(a.remote(r))
	if err := a.mayTry(addr, ""); err != nil {
		return Principal{}, err
	}
	a.failed(addr, "", true)
	return Principal{}, unauthorized("invalid access token")
}

// byPassword asks the broker, or the cache of its answers.
func (a *Authenticator) byPassword(r *http.Request, name, password, via string) (Principal, error) {
	if name == "" || password == "" {
		return Principal{}, unauthorized("name and password must not be empty")
	}
	digest := a.cache.digest(name, password)
	known, valid, recent := a.cache.find(digest)
	if !valid {
		begin, end := a.attempt(block(a.remote(r)), name, recent)
		user, err := a.cache.ask(r.Context(), digest, name, password, begin, end)
		var refused *problem.Problem
		switch {
		case err == nil || conclusive(err):
			known = cached{user: user, err: err}
		case errors.As(err, &refused):
			return Principal{}, err
		case !recent: // a password that was right not long ago still is
			return Principal{}, problem.Unavailable(err, "the broker's management API, which knows the users, does not answer")
		}
	}
	return known.principal(name, via)
}

// principal returns the user that the broker knows, or why there is none.
func (c cached) principal(name, via string) (Principal, error) {
	switch {
	case errors.Is(c.err, ErrWrongPassword):
		return Principal{}, unauthorized("invalid user name or password")
	case c.err != nil:
		return Principal{}, needsTag(name)
	case !c.user.VHost:
		return Principal{}, problem.New(http.StatusForbidden, "user %q may not use this virtual host", problem.Shorten(name))
	}
	return Principal{Name: c.user.Name, Role: RoleOf(c.user.Tags), Via: via}, nil
}

func needsTag(name string) error {
	return problem.New(http.StatusForbidden, "user %q needs one of the tags %s", problem.Shorten(name), Read.roles())
}

// attempt limits how often the broker is asked about a name from an address, also concurrently. A
// password that was right a short while ago (recent) is no attempt.
func (a *Authenticator) attempt(addr, name string, recent bool) (begin func() error, end func(error)) {
	begin = func() error {
		if recent {
			return nil
		}
		return a.mayTry(addr, name)
	}
	end = func(err error) {
		switch {
		case errors.Is(err, ErrWrongPassword):
			a.failed(addr, name, !recent)
		case !recent:
			a.limiter.end(addr, name)
		}
	}
	return begin, end
}

// mayTry begins an attempt, or refuses it where too many have failed.
func (a *Authenticator) mayTry(addr, name string) error {
	wait := a.limiter.begin(addr, name, a.cfg.Now())
	if wait == 0 {
		return nil
	}
	p := problem.New(http.StatusTooManyRequests, "too many attempts to sign in failed: wait")
	p.RetryAfter = strconv.Itoa(int(math.Ceil(wait.Seconds())))
	return p
}

// failed counts an attempt that failed, and logs it.
func (a *Authenticator) failed(addr, name string, begun bool) {
	a.limiter.fail(addr, name, a.cfg.Now(), begun)
	a.cfg.Log.Warn("httpapi: sign-in failed", "user", problem.Shorten(name), "from", addr)
}

// remote returns where a request comes from. A client may write all addresses but the proxy's last.
func (a *Authenticator) remote(r *http.Request) string {
	if a.cfg.BehindProxy {
		all := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if last := strings.TrimSpace(all[len(all)-1]); last != "" {
			return hostName(last)
		}
	}
	return hostName(r.RemoteAddr)
}
