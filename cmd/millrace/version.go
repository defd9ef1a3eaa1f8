package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// version is set by the release build.
var version = ""

type versionCmd struct{ output.Result }

// Run prints what this binary was built from.
func (c versionCmd) Run(out output.Streams) error {
	return c.Printer(out).Done(output.Fields{"version": versionText(), "go": runtime.Version(), "platform": platform()}, "%s", versionLine())
}

func versionLine() string {
	return fmt.Sprintf("millrace %s (%s, %s)", versionText(), runtime.Version(), platform())
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// versionText is the release's number, else the commit.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if len(revision) < 12 {
		return info.Main.Version
	}
	if settings["vcs.modified"] == "true" {
		return revision[:12] + ", modified"
	}
	return revision[:12]
}
