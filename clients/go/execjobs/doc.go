// Package execjobs is a worker whose jobs are commands. It needs no program of your own: a YAML
// file maps classes to commands.
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
// A command gets the args of the job as JSON on its standard input, byte for byte. Its environment
// has MILLRACE_JID, MILLRACE_CLASS, MILLRACE_QUEUE and MILLRACE_ATTEMPT, and TRACEPARENT if the job
// has a trace. No shell is used unless a class asks for one. Args never become part of a command
// line.
//
// # Failures
//
// Exit code 0 is a success. Everything else is a failure, and its message is the end of what the
// command wrote.
//
// A command runs in its own process group. When its timeout is over, the group gets SIGTERM, and
// SIGKILL 5 seconds later. On Linux, a command dies with its worker.
//
// Windows has no SIGTERM and no process groups. There, a command whose timeout is over is killed,
// but not the processes that it has started. Shell lines need /bin/sh.
package execjobs
