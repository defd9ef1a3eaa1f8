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
	Ctl     string // the program that administers it from a shell

	DefaultExchange string // what permissions call the exchange that has no name

	ExclusiveLock          bool  // the leader's lock is an exclusive queue, since one node leads the others; else a quorum queue
	DelaysNodeLoss         bool  // a single active consumer stays active until its channel has ended, or its node has been lost for long enough
	StreamOffsetBase       int64 // offset of the first record of a new stream
	StreamOffsetsDrift     bool  // a reader that retention overtook is given wrong offsets
	StreamDepth            bool  // a passive declare of a stream tells how many records it has
	ConsumerTimeoutPolicy  bool  // a policy may say consumer-timeout
	RejectPublishDLXDrops  bool  // overflow reject-publish-dlx drops the head instead of refusing
	PausesQueues           bool  // a queue can be paused for all consumers
	OneNodeServes          bool  // of several nodes one has all queues, and the others pass on to it
	DeadLettersToStream    bool  // dead-lettering into a stream works
	Plugins                bool  // management API and native stream protocol are plugins, to be enabled
	TaglessAreUnknown      bool  // the management API says the same of a user without tags and of a wrong password
	NativeStreamProtocol   bool  // may have a stream listener
	ReadersDieOnBadRecords bool  // some records end every AMQP 0-9-1 reader's connection
	RefusalsNameArguments  bool  // who declares a thing otherwise than it is learns which argument differs
	RefusalsOverflow       bool  // a refusal that repeats a long name, not all of it ASCII, ends the connection
	ASCIINamesOnly         bool  // names of queues and exchanges are printable ASCII
	StreamSegmentPolicy    bool  // a policy says how large the segments of a stream are
	NoPartitionHandling    bool  // nodes that lose each other need no setting: a majority decides
	QuorumQueues           bool  // queues can have replicas on several nodes
	QuorumPriorities       bool  // quorum queues hand out jobs of a higher priority first
	HeadTimestamps         bool  // the management API tells of how old the oldest message in a queue is
	QueueMemory            bool  // the management API tells how much memory a queue takes
	BodyBytes              bool  // the management API tells the size of a queue's bodies, and not of all that it keeps
	LargeStreamFrames      bool  // a native publish may be of over a megabyte
	MessageLimit           int64 // how long a message's body may be, unless told otherwise
	ClosesOnOddProperties  bool  // closes the connection over a message for a stream whose type says "amqp-1.0", or whose reply-to is no UTF-8
	HoldsSmallFramesBack   bool  // leaves Nagle's algorithm on unless told otherwise
	TearsMessages          bool  // killed in the middle of a publish, it delivers what it had written of it: often no body at all
}

// FeaturesOf is the capability table. An unknown product is taken for a recent RabbitMQ.
func FeaturesOf(product, version string) Features {
	f := Features{Product: product, Version: version, MessageLimit: 128 << 20}
	if product == LavinMQ {
		f.Ctl = "lavinmqctl"
		f.ExclusiveLock = true
		f.TaglessAreUnknown = true
		f.StreamOffsetBase = 1
		f.StreamOffsetsDrift = true
		f.StreamDepth = true
		f.RejectPublishDLXDrops = true
		f.PausesQueues = true
		f.OneNodeServes = true
		f.DeadLettersToStream = true
		f.ASCIINamesOnly = true
		f.HoldsSmallFramesBack = true
		f.TearsMessages = true
		return f
	}
	f.Ctl = "rabbitmqctl"
	f.DefaultExchange = "amq.default"
	f.Plugins = true
	f.NativeStreamProtocol = true
	f.RefusalsNameArguments = true
	f.StreamSegmentPolicy = true
	f.HeadTimestamps = true
	f.BodyBytes = true
	f.QueueMemory = true
	f.ReadersDieOnBadRecords = true
	f.ConsumerTimeoutPolicy = atLeast(version, 3, 12)
	f.DeadLettersToStream = atLeast(version, 4, 0)
	f.DelaysNodeLoss = atLeast(version, 4, 3)
	f.LargeStreamFrames = !atLeast(version, 4, 0)
	f.ClosesOnOddProperties = atLeast(version, 4, 0)
	f.RefusalsOverflow = atLeast(version, 4, 0)
	f.QuorumQueues = true
	f.NoPartitionHandling = atLeast(version, 4, 3)
	f.QuorumPriorities = atLeast(version, 4, 3)
	if atLeast(version, 4, 0) {
		f.MessageLimit = 16 << 20
	}
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
