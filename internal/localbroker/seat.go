package localbroker

// loopback is where a node listens that is alone.
const loopback = "127.0.0.1"

// seat is what a node is given by the cluster that it belongs to, and has by default if it is alone.
type seat struct {
	name   string // for Erlang
	host   string // the address that it listens on
	cookie string // for Erlang: who knows it is let in
	config string // more lines of its configuration
	shared bool   // it is one of a cluster, which owns epmd and the ports
}

func lone(cfg Config) seat {
	s := seat{name: nodeName, host: loopback, cookie: newCookie()}
	if cfg.LavinMQ != "" {
		s.config = lavinmqAlone
	}
	return s
}
