package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SignedHeader is the header in which a proxy names the user of a request, with a signature.
const SignedHeader = "X-Millrace-User"

// LeastHeaderKey is how many bytes the key of the signature must have.
const LeastHeaderKey = 32

const (
	headerVersion = "1"
	headerPurpose = "millrace-user-1" // begins what is signed
	headerAge     = 30 * time.Second  // how far the clocks of proxy and sidecar may differ
	eventsAge     = 15 * time.Minute  // how long events are sent for one signature
)

// errSignature is returned for every header that is not valid. Its text does not help to guess one.
var errSignature = errors.New("the header " + SignedHeader + " has no valid signature")

// signer checks the header of ModeHeader. Its value has five parts with dots between them: the
// version, the time in seconds since 1970, the user's name and tags in base64, and the HMAC-SHA-256
// of all of them and of the request's method and target, in hexadecimal digits.
type signer struct {
	key []byte
	now func() time.Time
}

// find returns the principal whom a request names. The signature may be so old.
func (s *signer) find(r *http.Request, age time.Duration) (Principal, error) {
	values := r.Header.Values(SignedHeader)
	if len(s.key) < LeastHeaderKey || len(values) != 1 {
		return Principal{}, errSignature
	}
	parts := strings.Split(values[0], ".")
	if len(parts) != 5 || parts[0] != headerVersion {
		return Principal{}, errSignature
	}
	sum, err := hex.DecodeString(parts[4])
	if err != nil || !hmac.Equal(sum, s.sum(r, parts[1:4])) {
		return Principal{}, errSignature
	}
	signed, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return Principal{}, errSignature
	}
	passed := s.now().Sub(time.Unix(signed, 0))
	if passed > age || passed < -headerAge {
		return Principal{}, errSignature
	}
	name, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(name) == 0 {
		return Principal{}, errSignature
	}
	tags, err := base64.StdEncoding.DecodeString(parts[3])
	if err != nil {
		return Principal{}, errSignature
	}
	return Principal{Name: string(name), Role: RoleOf(strings.Split(string(tags), ",")), Via: viaHeader}, nil
}

func (s *signer) sum(r *http.Request, parts []string) []byte {
	h := hmac.New(sha256.New, s.key)
	_, _ = h.Write([]byte(strings.Join(append([]string{headerPurpose, r.Method, r.RequestURI}, parts...), "\n"))) // never fails
	return h.Sum(nil)
}
