package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestErrorTextsAreLimited(t *testing.T) {
	long := strings.Repeat("é", maxFailureMessage+5)
	record := Failure{ErrorClass: long, ErrorMessage: long}.record()
	require.Equal(t, maxFailureMessage, utf8.RuneCountInString(record.ErrorMessage))
	require.LessOrEqual(t, len(record.ErrorClass), maxFailureClass)
	require.True(t, utf8.ValidString(record.ErrorClass))
	require.Equal(t, "short", firstRunes("short", 9))
}
