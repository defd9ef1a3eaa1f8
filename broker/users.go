package broker

import (
	"context"
	"net/http"
)

// User is a user of the broker.
type User struct {
	Name string
	Tags []string
}

// WhoAmI returns the user whose name and password m uses. An error with status 401 means that they
// are invalid.
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

// MayUseVHost reports whether the user may see what is in the virtual host.
func (m *Management) MayUseVHost(ctx context.Context) (bool, error) {
	// A list of virtual hosts is not enough: RabbitMQ shows all of them to a user who may monitor.
	err := m.get(ctx, "/api/exchanges/"+segment(m.vhost)+"/amq.direct?columns=name", &struct{}{})
	switch {
	case err == nil:
		return true, nil
	case Unauthorized(err) || statusOf(err) == http.StatusNotFound:
		return false, nil
	}
	return false, err
}

// Permission is what one user may do in the virtual host. Each field is a regular expression over
// names.
type Permission struct {
	User      string `json:"user"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// Permissions returns the permissions of all users in the virtual host. Only administrators may
// ask.
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
	Product  string // the name of the client library; "Millrace" for our own
	PeerHost string
}

// ConnectionsOf returns a user's connections to the virtual host. With it, doctor detects that
// clients share Millrace's user. The broker takes a few seconds to show a new connection.
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
