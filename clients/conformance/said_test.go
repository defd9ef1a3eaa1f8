package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLastOutputIsKept(t *testing.T) {
	var s said
	for i := range 4000 {
		fmt.Fprintf(&s, "line %04d\n", i)
	}
	require.Len(t, s.String(), mostSaid)
	require.True(t, strings.HasSuffix(s.String(), "line 3998\nline 3999\n"))
}
