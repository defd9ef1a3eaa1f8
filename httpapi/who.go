package httpapi

import (
	"context"
	"errors"
	"net/http"
)

// User is what the broker knows of whoever a name and password belong to.
type User struct {
	Name  string
	Tags  []string
	VHost bool // may use the virtual host
}

// HasUsers tells whether there is a management API, which knows the broker's users.
type HasUsers int

// What may be known of that.
const (
	UsersUnsettled HasUsers = iota // it has not been found out yet
	UsersAbsent                    // there is none
	UsersPresent                   // there is one, or was when this process last looked
)

var (
	// ErrWrongPassword says that no user has this name and password.
	ErrWrongPassword = errors.New("wrong user name or password")
	// ErrNoTag says that the password is right, and its owner has no tag that lets it in.
	ErrNoTag = errors.New("this user has no tag that lets it in")
)

// How somebody said who they are.
const (
	viaNothing = "none" // nobody is asked
	viaBasic   = "basic"
	viaBearer  = "bearer"
	viaSession = "session"
)

// who is whoever sent a request.
type who struct {
	name string
	role Role
	via  string
	ends int64 // of the session, seconds since 1970; 0 if there is none
}

// anyone is who everybody is where nobody is asked.
var anyone = who{name: "http", role: Administrator, via: viaNothing}

type whoKey struct{}

func withWho(r *http.Request, w who) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), whoKey{}, w))
}

// whoSent tells who sent a request that was admitted.
func whoSent(r *http.Request) who {
	w, _ := r.Context().Value(whoKey{}).(who)
	return w
}
