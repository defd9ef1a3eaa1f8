package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Overview is what the broker reports about itself.
type Overview struct {
	Product   string
	Version   string
	Node      string // the node that answered
	Cluster   string // name of the cluster; empty on LavinMQ
	Listeners []Listener
	Host      string // the host of the management API that answered
}

// Listener is a port on which the broker listens.
type Listener struct {
	Node     string `json:"node"`
	Protocol string `json:"protocol"`
	Address  string `json:"ip_address"`
	Port     int    `json:"port"`
}

// overview is an Overview as the broker writes it.
type overview struct {
	RabbitMQVersion string     `json:"rabbitmq_version"`
	LavinMQVersion  string     `json:"lavinmq_version"`
	Node            string     `json:"node"`
	Cluster         string     `json:"cluster_name"`
	Listeners       []Listener `json:"listeners"`
}

// product returns the broker's name and version, or empty strings if it is neither RabbitMQ nor
// LavinMQ.
func (o *overview) product() (name, version string) {
	switch {
	case o.LavinMQVersion != "":
		return LavinMQ, o.LavinMQVersion
	case o.RabbitMQVersion != "":
		return RabbitMQ, o.RabbitMQVersion
	}
	return "", ""
}

// Overview asks the broker which product it is, and where it listens.
func (m *Management) Overview(ctx context.Context) (Overview, error) {
	var said overview
	from, err := m.getFrom(ctx, "/api/overview", &said)
	if err != nil {
		return Overview{}, err
	}
	host, _, err := net.SplitHostPort(from.Host)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Node: said.Node, Cluster: said.Cluster, Listeners: said.Listeners, Host: host}
	if o.Product, o.Version = said.product(); o.Product == "" {
		return Overview{}, fmt.Errorf("broker: management API: what answers at %s is neither RabbitMQ nor LavinMQ", from.Host)
	}
	return o, nil
}

// Clock returns the time of the node that answers, in whole seconds. ok is false if the answer has
// no time.
func (m *Management) Clock(ctx context.Context) (now time.Time, ok bool, err error) {
	a, err := m.hosts.ask(ctx, greeting)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("broker: management API: %w", err)
	}
	now, err = http.ParseTime(a.date)
	return now, err == nil, nil
}

// StreamListeners returns the hosts and ports where the broker's nodes speak the native stream
// protocol. Those of the node that answered come first.
func (m *Management) StreamListeners(ctx context.Context) ([]string, error) {
	overview, err := m.Overview(ctx)
	if err != nil {
		return nil, err
	}
	var here, elsewhere []string
	for _, l := range overview.Listeners {
		if l.Protocol != "stream" || l.Port == 0 {
			continue
		}
		address := net.JoinHostPort(overview.hostOf(l), strconv.Itoa(l.Port))
		if l.Node == overview.Node {
			here = append(here, address)
		} else {
			elsewhere = append(elsewhere, address)
		}
	}
	return append(here, elsewhere...), nil
}

// hostOf returns a name of the host that has a listener. If it listens on all addresses, that is
// the host where the management API answered, or the host in the name of the listener's node.
func (o Overview) hostOf(l Listener) string {
	if ip := net.ParseIP(l.Address); ip != nil && !ip.IsUnspecified() {
		return l.Address
	}
	_, host, named := strings.Cut(l.Node, "@")
	if l.Node == o.Node || !named {
		return o.Host
	}
	return host
}

// Node is one node of the broker. LavinMQ reports no alarms.
type Node struct {
	Name    string
	Running bool
	// Uptime is that of the process. It continues when the application or a vhost restarts.
	Uptime     time.Duration
	MemAlarm   bool
	DiskAlarm  bool
	Drained    bool     // in maintenance mode: new queues get no member here
	Partitions []string // nodes that this node cannot see
	Links      []Link

	Version     string // of RabbitMQ; empty if not reported
	NetTickTime int    // seconds; 0 if not reported
}

// Link is a node's connection to another node. A link that breaks and comes back has other ports.
type Link struct {
	Peer     string `json:"name"`
	Port     int    `json:"sock_port"`
	PeerPort int    `json:"peer_port"`
}

// Nodes returns the broker's nodes, including those that are down.
func (m *Management) Nodes(ctx context.Context) ([]Node, error) {
	var said []struct {
		Name       string   `json:"name"`
		Running    bool     `json:"running"`
		Uptime     float64  `json:"uptime"`
		MemAlarm   bool     `json:"mem_alarm"`
		DiskAlarm  bool     `json:"disk_free_alarm"`
		Drained    bool     `json:"being_drained"`
		Partitions []string `json:"partitions"`
		Links      []Link   `json:"cluster_links"`
		TickTime   float64  `json:"net_ticktime"`
		Parts      []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"applications"`
	}
	if err := m.get(ctx, "/api/nodes", &said); err != nil {
		return nil, err
	}
	nodes := make([]Node, len(said))
	for i, n := range said {
		nodes[i] = Node{Name: n.Name, Running: n.Running, Uptime: time.Duration(n.Uptime) * time.Millisecond,
			MemAlarm: n.MemAlarm, DiskAlarm: n.DiskAlarm, Drained: n.Drained, Partitions: n.Partitions, Links: n.Links, NetTickTime: int(n.TickTime)}
		for _, part := range n.Parts {
			if part.Name == "rabbit" {
				nodes[i].Version = part.Version
			}
		}
	}
	return nodes, nil
}

// DefaultQueueType returns the virtual host's type of a queue that is declared without one. It is
// empty if the virtual host sets none.
func (m *Management) DefaultQueueType(ctx context.Context) (string, error) {
	var said struct {
		Type string `json:"default_queue_type"`
	}
	if err := m.get(ctx, "/api/vhosts/"+segment(m.vhost), &said); err != nil {
		return "", err
	}
	if said.Type == "undefined" {
		return "", nil
	}
	return said.Type, nil
}

// Alarms describes what makes the broker stop accepting messages. It is empty if nothing does.
func (m *Management) Alarms(ctx context.Context) ([]string, error) {
	nodes, err := m.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var alarms []string
	for _, n := range nodes {
		if n.MemAlarm {
			alarms = append(alarms, "memory alarm on "+n.Name)
		}
		if n.DiskAlarm {
			alarms = append(alarms, "disk alarm on "+n.Name)
		}
		if len(n.Partitions) > 0 {
			alarms = append(alarms, n.Name+" is partitioned from "+strings.Join(n.Partitions, ", "))
		}
	}
	return alarms, nil
}

// OpenManagement returns a client for a URL like http://user:password@host:15672, and asks which
// broker answers there. The URL may name several hosts, with commas between them. log may be nil.
func OpenManagement(ctx context.Context, rawURL, vhost string, log *slog.Logger) (*Management, error) {
	m, err := NewManagement(rawURL, vhost, log)
	if err != nil {
		return nil, err
	}
	if err := m.FindFeatures(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// FindFeatures asks which broker answers, and sets Features.
func (m *Management) FindFeatures(ctx context.Context) error {
	overview, err := m.Overview(ctx)
	if err == nil {
		m.features = FeaturesOf(overview.Product, overview.Version)
	}
	return err
}
