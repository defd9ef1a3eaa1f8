// Package execjobs is a worker whose jobs are commands, for people without any library: a YAML file maps classes to commands.
//
//	queues: [critical, default]
//	concurrency: 4
//	classes:
//	  Resize:
//	    command: [convert, -resize, 50%, -, out.png]
//	    timeout: 60s
//	  Report:
//	    shell: "generate-report | mail -s report ann@example.com"
//
// A command gets the job's args as JSON on its standard input, byte for byte, and MILLRACE_JID, _CLASS, _QUEUE, _ATTEMPT and
// TRACEPARENT in its environment. Exit code 0 is a success, everything else a failure, whose message is the last that the command wrote. No
// shell is involved unless a class asks for one; args never become part of a command line.
//
// A command runs in a process group of its own. When its time is over the group gets SIGTERM, and SIGKILL 5 seconds later; when the
// worker dies, so does the command (on Linux). On Windows, which has neither, a command whose time is over is killed, but not what
// it has started, and shell lines need /bin/sh.
package execjobs
