package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	r := millrace(t, "version")
	require.Zero(t, r.code)
	require.Regexp(t, `^millrace \S.* \(go1\.\S+, \w+/\w+\)\n$`, r.out)
}

func TestVersionIsCommitUnlessReleased(t *testing.T) {
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}}
	require.Equal(t, "0123456789ab, modified", versionOf(info))
	info.Settings[1].Value = "false"
	require.Equal(t, "0123456789ab", versionOf(info))
	require.Equal(t, "v1.2.3", versionOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}))
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"dead", "retry", "--help"}} {
		r := millrace(t, args...)
		require.Zero(t, r.code)
		require.Contains(t, r.out, "Usage: millrace")
		require.Empty(t, r.err)
	}
}
