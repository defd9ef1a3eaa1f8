package httpapi

import "slices"

// Role is what somebody may do. Its names are the broker's tags.
type Role string

// Roles, from the weakest. Management and policymaker may do the same here.
const (
	Nobody        Role = ""
	Monitoring    Role = "monitoring"
	Management    Role = "management"
	Policymaker   Role = "policymaker"
	Administrator Role = "administrator"
)

var rolesByStrength = []Role{Administrator, Policymaker, Management, Monitoring}

// RoleOf is the strongest role among a user's tags.
func RoleOf(tags []string) Role {
	for _, r := range rolesByStrength {
		if slices.Contains(tags, string(r)) {
			return r
		}
	}
	return Nobody
}

func (r Role) known() bool { return slices.Contains(rolesByStrength, r) }

// access is the most that a role opens.
func (r Role) access() access {
	switch r {
	case Administrator:
		return administer
	case Policymaker, Management:
		return acts
	case Monitoring:
		return reads
	}
	return open
}

// access is what a route asks of whoever takes it.
type access int

const (
	open       access = iota // nothing: probes, and what one needs to sign in
	reads                    // monitoring
	acts                     // management, policymaker
	administer               // administrator
)

// weakest names the roles from which on something is open.
func (a access) weakest() string {
	switch a {
	case reads:
		return "monitoring, management, policymaker or administrator"
	case acts:
		return "management, policymaker or administrator"
	}
	return "administrator"
}
