package hosts

import "strings"

// SocketPath returns the path of a socket in the file system, from an address unix:PATH.
func SocketPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, "unix:") }
