package wire

import shared "github.com/millrace-jobs/millrace/clients/go/wire"

// ASCII returns s as a header can hold it: at most 255 bytes of printable ASCII, with "?" for every
// other character.
func ASCII(s string) string {
	out := make([]byte, 0, min(len(s), shared.MaxShort))
	for _, r := range s {
		if len(out) == shared.MaxShort {
			break
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return string(out)
}

// Shorten cuts a text after its first n bytes, and marks the cut.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return shared.FirstBytes(s, n) + "…"
}

// trimClose copies an object without its closing brace.
func trimClose(raw []byte) []byte {
	end := len(raw) - 1
	for raw[end] != '}' {
		end--
	}
	return append(make([]byte, 0, len(raw)+160), raw[:end]...)
}
