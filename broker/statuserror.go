package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// StatusError is returned when the management API answers with a status other than success.
type StatusError struct {
	Status int
	Reason string // the broker's words
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d %s", e.Status, e.Reason) }

func refusal(raw []byte) string {
	var said struct {
		Error  string `json:"error"`
		Reason any    `json:"reason"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return strings.TrimSpace(fmt.Sprintf("%.200s", raw))
	}
	if reason, isText := said.Reason.(string); isText && reason != "" {
		return strings.TrimSpace(reason)
	}
	return said.Error
}

func statusOf(err error) int {
	var answer *StatusError
	if errors.As(err, &answer) {
		return answer.Status
	}
	return 0
}

// Unauthorized reports whether an error says that name and password are invalid, or that the user
// may not ask.
func Unauthorized(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}
