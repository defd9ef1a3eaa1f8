package connect

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// NewManagement returns the management API without asking it anything. It will refuse to be used if
// it belongs to another broker.
func (b *Broker) NewManagement() (*broker.Management, error) {
	mgmt, err := broker.NewManagement(b.Management(), VHost(b.amqp()), b.Log)
	if err != nil {
		return nil, err
	}
	mgmt.Near(b.Hosts)
	mgmt.OnlyOf(b.Config("checks"))
	return mgmt, nil
}

// OpenManagement returns the management API if it answers and belongs to the broker.
func (b *Broker) OpenManagement(ctx context.Context) (*broker.Management, error) {
	mgmt, err := b.NewManagement()
	if err != nil {
		return nil, err
	}
	if err := mgmt.FindFeatures(ctx); err != nil {
		mgmt.Close()
		return nil, err
	}
	if err := mgmt.CheckHosts(ctx); err != nil {
		b.Log.Warn("millrace: a host of --management-url is another broker's, or cut off from it, and is not used meanwhile", "error", err)
	}
	return mgmt, nil
}

// OtherBroker returns the part of an error that says that the management API is another broker's,
// or nil.
func OtherBroker(err error) *broker.OtherBrokerError {
	var other *broker.OtherBrokerError
	if errors.As(err, &other) {
		return other
	}
	return nil
}

// OtherBrokerRemedy says what to do about a management API of another broker.
func OtherBrokerRemedy(e *broker.OtherBrokerError) string {
	return "set --management-url to the management API of the broker at " + e.AMQPHost + ", or --amqp-url to the broker of the other"
}

// WithoutManagement says what does not work without the management API.
const WithoutManagement = "jobs that workers reject, and jobs for queues that do not exist yet, are lost unless the " +
	"policies are set by hand (millrace doctor prints them)"

// UnauthorizedRemedy says what to do about a management API that refuses the user.
func (b *Broker) UnauthorizedRemedy() string {
	u, err := hosts.Parse(b.Management())
	if err != nil {
		return "check --management-url"
	}
	tags := TagsCommand(User(u))
	return "give it the tags that it needs with rabbitmqctl " + tags + " (LavinMQ: lavinmqctl " + tags + "), or check the user and password of --management-url"
}

// TagsCommand returns the command, without the program, that gives a sidecar's user its tags, and
// more of them.
func TagsCommand(user string, more ...string) string {
	return "set_user_tags " + Quote(user) + " " + strings.Join(slices.Concat(SidecarTags, more), " ")
}
