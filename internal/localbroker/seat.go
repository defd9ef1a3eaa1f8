package localbroker

// loopback is the address on which a single node listens.
const loopback = "127.0.0.1"

// seat has the settings that a node gets from its cluster, or the defaults of a single node.
type seat struct {
	name     string // for Erlang
	host     string // the address that it listens on
	cookie   string // for Erlang: a secret that grants access
	config   string // more lines for its configuration
	shared   bool   // part of a cluster, which owns epmd and the ports
	packaged bool   // without the files in /etc/rabbitmq/conf.d

	extension Extension
}

func lone(cfg Config) seat {
	s := seat{name: nodeName, host: loopback, cookie: newCookie(), extension: cfg.Extension}
	if cfg.LavinMQ != "" {
		s.config = lavinmqAlone
	}
	return s
}
