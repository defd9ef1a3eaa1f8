package broker

import (
	"strconv"
	"strings"
)

// Names of brokers, as they call themselves.
const (
	RabbitMQ = "RabbitMQ"
	LavinMQ  = "LavinMQ"
)

// Features is what differs between brokers and matters to Millrace. No other place asks for a product's name.
type Features struct {
	Product string
	Version string

	StreamOffsetBase       int64 // offset of the first record of a new stream
	StreamOffsetsDrift     bool  // a reader that retention overtook is given wrong offsets
	StreamDepth            bool  // a passive declare of a stream tells how many records it has
	ConsumerTimeoutPolicy  bool  // a policy may say consumer-timeout
	RejectPublishDLXDrops  bool  // overflow reject-publish-dlx drops the head instead of refusing
	PausesQueues           bool  // a queue can be paused for all consumers
	DeadLettersToStream    bool  // dead-lettering into a stream works
	NativeStreamProtocol   bool  // may have a stream listener
	ReadersDieOnBadRecords bool  // some records end every AMQP 0-9-1 reader's connection
}

// featuresOf is the capability table. An unknown product is taken for a recent RabbitMQ.
func featuresOf(product, version string) Features {
	f := Features{Product: product, Version: version}
	if product == LavinMQ {
		f.StreamOffsetBase = 1
		f.StreamOffsetsDrift = true
		f.StreamDepth = true
		f.RejectPublishDLXDrops = true
		f.PausesQueues = true
		f.DeadLettersToStream = true
		return f
	}
	f.NativeStreamProtocol = true
	f.ReadersDieOnBadRecords = true
	f.ConsumerTimeoutPolicy = atLeast(version, 3, 12)
	f.DeadLettersToStream = atLeast(version, 4, 0)
	return f
}

func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	number := func(i int) int {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i])
		return n
	}
	return number(0) > major || number(0) == major && number(1) >= minor
}
