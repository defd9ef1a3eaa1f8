package broker

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Overview is what the broker says of itself.
type Overview struct {
	Product   string
	Version   string
	Node      string // the one that answered
	Cluster   string // its cluster's name; empty on LavinMQ
	Listeners []Listener
}

// Listener is a port of the broker.
type Listener struct {
	Node     string `json:"node"`
	Protocol string `json:"protocol"`
	Address  string `json:"ip_address"`
	Port     int    `json:"port"`
}

// Overview asks the broker what it is.
func (m *Management) Overview(ctx context.Context) (Overview, error) {
	var said struct {
		ProductName     string     `json:"product_name"`
		ProductVersion  string     `json:"product_version"`
		RabbitMQVersion string     `json:"rabbitmq_version"`
		LavinMQVersion  string     `json:"lavinmq_version"`
		Node            string     `json:"node"`
		Cluster         string     `json:"cluster_name"`
		Listeners       []Listener `json:"listeners"`
	}
	if err := m.get(ctx, "/api/overview", &said); err != nil {
		return Overview{}, err
	}
	o := Overview{Product: said.ProductName, Node: said.Node, Cluster: said.Cluster, Listeners: said.Listeners}
	switch {
	case said.LavinMQVersion != "":
		o.Product, o.Version = LavinMQ, said.LavinMQVersion
	case said.RabbitMQVersion != "":
		o.Product, o.Version = RabbitMQ, said.RabbitMQVersion
	default:
		return Overview{}, fmt.Errorf("broker: management API: what answers at %s is neither RabbitMQ nor LavinMQ", m.base)
	}
	return o, nil
}

// StreamListener is the host and port where the broker speaks the native stream protocol; ok is false where it does not.
func (m *Management) StreamListener(ctx context.Context) (hostPort string, ok bool, err error) {
	overview, err := m.Overview(ctx)
	if err != nil {
		return "", false, err
	}
	for _, l := range overview.Listeners {
		if l.Protocol != "stream" || l.Port == 0 {
			continue
		}
		host := l.Address
		if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
			host = m.host // it listens everywhere; the management API's host is one of its names
		}
		return net.JoinHostPort(host, strconv.Itoa(l.Port)), true, nil
	}
	return "", false, nil
}

// Node is one node of the broker. LavinMQ tells of no alarms.
type Node struct {
	Name       string
	Running    bool
	Uptime     time.Duration // of the operating system process; restarts of the application or of a virtual host do not show
	MemAlarm   bool
	DiskAlarm  bool
	Partitions []string // nodes it lost sight of
}

// Nodes lists the broker's nodes, also those that are down.
func (m *Management) Nodes(ctx context.Context) ([]Node, error) {
	var said []struct {
		Name       string   `json:"name"`
		Running    bool     `json:"running"`
		Uptime     float64  `json:"uptime"`
		MemAlarm   bool     `json:"mem_alarm"`
		DiskAlarm  bool     `json:"disk_free_alarm"`
		Partitions []string `json:"partitions"`
	}
	if err := m.get(ctx, "/api/nodes", &said); err != nil {
		return nil, err
	}
	nodes := make([]Node, len(said))
	for i, n := range said {
		nodes[i] = Node{n.Name, n.Running, time.Duration(n.Uptime) * time.Millisecond, n.MemAlarm, n.DiskAlarm, n.Partitions}
	}
	return nodes, nil
}

// Alarms says what makes the broker stop taking messages, in words; empty when nothing does.
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
