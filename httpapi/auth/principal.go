package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// User is what the broker knows of the user that a name and password belong to.
type User struct {
	Name  string
	Tags  []string
	VHost bool // may use the virtual host
}

// HasUsers says whether there is a management API, which knows the broker's users.
type HasUsers int

// Values of HasUsers.
const (
	UsersUnsettled HasUsers = iota // it has not been found out yet
	UsersAbsent                    // there is none
	UsersPresent                   // there is one, or was when this process last looked
)

var (
	// ErrWrongPassword is returned when no user has this name and password.
	ErrWrongPassword = errors.New("wrong user name or password")
	// ErrNoTag is returned when the password is right, and the user has no tag that grants access.
	ErrNoTag = errors.New("this user has no tag that lets it in")
)

// Role is what a user may do. Its names are the broker's tags.
type Role string

// Roles, from the weakest. Management and policymaker may do the same here.
const (
	NoRole        Role = ""
	Monitoring    Role = "monitoring"
	Management    Role = "management"
	Policymaker   Role = "policymaker"
	Administrator Role = "administrator"
)

var rolesByStrength = []Role{Administrator, Policymaker, Management, Monitoring}

// RoleOf returns the strongest role among a user's tags.
func RoleOf(tags []string) Role {
	for _, r := range rolesByStrength {
		if slices.Contains(tags, string(r)) {
			return r
		}
	}
	return NoRole
}

// Allows reports whether the role has an access.
func (r Role) Allows(needs Access) bool { return needs <= accessOf[r] }

var accessOf = map[Role]Access{Monitoring: Read, Management: Act, Policymaker: Act, Administrator: Administer}

// Access is what a route asks of a user.
type Access int

// Levels of access, each with the roles that have it.
const (
	Open       Access = iota // everyone: probes, and what a user needs to sign in
	Read                     // monitoring
	Act                      // management, policymaker
	Administer               // administrator
)

// roles names the roles that have an access.
func (a Access) roles() string {
	switch a {
	case Read:
		return "monitoring, management, policymaker or administrator"
	case Act:
		return "management, policymaker or administrator"
	}
	return "administrator"
}

// How a principal signed in.
const (
	viaNone    = "none" // no user was asked for
	viaBasic   = "basic"
	viaBearer  = "bearer"
	viaSession = "session"
	viaHeader  = "header"
)

// Principal is the user behind a request.
type Principal struct {
	Name string
	Role Role
	Via  string // none, basic, bearer, session or header
	Ends int64  // of the session, in seconds since 1970; 0 without one
}

// anonymous is the principal of all requests where users are not authenticated.
var anonymous = Principal{Name: "http", Role: Administrator, Via: viaNone}

type principalKey struct{}

func withPrincipal(r *http.Request, p Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

// PrincipalOf returns the principal of a request that was admitted.
func PrincipalOf(r *http.Request) Principal {
	p, _ := r.Context().Value(principalKey{}).(Principal)
	return p
}
