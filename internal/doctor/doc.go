// Package doctor examines a broker, and the sidecar beside it, and says how to fix what is wrong.
// It is what `millrace doctor` runs.
//
// An examination is a list of checks (see checks). Each check needs the broker, the management API
// or the streams. A check whose need could not be opened is skipped, and the check that failed to
// open it has said why.
//
// # Promises
//
// The examination declares nothing and publishes nothing, with one exception: it sets Millrace's
// policies where they are missing, as every sidecar does. It needs no sidecar. It shows no
// passwords. A finding that is not ok has a remedy wherever there is one: a command, or a setting.
//
// # When things fail
//
// A broker that cannot be reached is a finding, and the only one. A question that the broker does
// not answer, for example because the user may not ask it, is a note, not an error. Only errors end
// the command with exit code 1.
package doctor
