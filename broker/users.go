package broker

import (
	"context"
	"net/http"
)

// User is who a name and password belong to.
type User struct {
	Name string
	Tags []string
}

// WhoAmI asks whose name and password these are. An error of status 401 says that they are nobody's.
func (m *Management) WhoAmI(ctx context.Context) (User, error) {
	var said struct {
		Name string `json:"name"`
		Tags tags   `json:"tags"`
	}
	if err := m.get(ctx, "/api/whoami", &said); err != nil {
		return User{}, err
	}
	return User{said.Name, said.Tags}, nil
}

// MayUseVHost tells whether the user may see what is in the virtual host.
func (m *Management) MayUseVHost(ctx context.Context) (bool, error) {
	// A list of virtual hosts will not do: RabbitMQ shows all of them to whoever may monitor.
	err := m.get(ctx, "/api/exchanges/"+segment(m.vhost)+"/amq.direct?columns=name", &struct{}{})
	switch {
	case err == nil:
		return true, nil
	case Unauthorized(err) || statusOf(err) == http.StatusNotFound:
		return false, nil
	}
	return false, err
}

// Permission is what one user may in the virtual host: three regular expressions over names.
type Permission struct {
	User      string `json:"user"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// Permissions lists what the users of the virtual host may. Only administrators may ask.
func (m *Management) Permissions(ctx context.Context) ([]Permission, error) {
	var said []Permission
	err := m.get(ctx, "/api/vhosts/"+segment(m.vhost)+"/permissions", &said)
	return said, err
}

// Connection is one client connection to the virtual host.
type Connection struct {
	Name     string // the broker's name for it
	User     string
	Given    string // the name that the client gave it
	Product  string // the client library, as it calls itself; "Millrace" for our own
	PeerHost string
}

// ConnectionsOf lists a user's connections to the virtual host, so that doctor can tell when clients share Millrace's user. The
// broker takes a few seconds to show new ones.
func (m *Management) ConnectionsOf(ctx context.Context, user string) ([]Connection, error) {
	var said []struct {
		Name       string `json:"name"`
		User       string `json:"user"`
		PeerHost   string `json:"peer_host"`
		Properties object `json:"client_properties"`
	}
	if err := m.get(ctx, "/api/vhosts/"+segment(m.vhost)+"/connections", &said); err != nil {
		return nil, err
	}
	var connections []Connection
	for _, c := range said {
		if c.User != user {
			continue
		}
		given, _ := c.Properties["connection_name"].(string)
		product, _ := c.Properties["product"].(string)
		connections = append(connections, Connection{c.Name, c.User, given, product, c.PeerHost})
	}
	return connections, nil
}

// Unauthorized tells whether an error says that name and password are nobody's, or that their owner may not ask.
func Unauthorized(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}
