package disttest

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clientVersion is the version of the client libraries, which a release before 1.0.0-rc.1 or the
// like does not share.
func clientVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../clients/go/config.go")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), `const Version = "`)
	require.True(t, found)
	version, _, _ := strings.Cut(after, `"`)
	return version
}

// dist returns the folder with the release, and its version, which the chart's name has.
func dist(t *testing.T) (folder, version string) {
	t.Helper()
	folder = os.Getenv("MILLRACE_DIST")
	require.NotEmpty(t, folder, "run make test-packages, or set MILLRACE_DIST to the folder of a release")
	charts, err := filepath.Glob(filepath.Join(folder, "millrace-chart-*.tgz"))
	require.NoError(t, err)
	require.Len(t, charts, 1, "there is one chart in %s", folder)
	return folder, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(charts[0]), "millrace-chart-"), ".tgz")
}

// run runs a program, and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s%s", cmd, out, stderr.String())
	return string(out)
}

// unpacked unpacks an archive, and returns the folder in it.
func unpacked(t *testing.T, system string) string {
	t.Helper()
	folder, version := dist(t)
	name, into := "millrace_"+version+"_"+system, t.TempDir()
	if strings.HasPrefix(system, "windows") {
		run(t, "python3", "-m", "zipfile", "-e", filepath.Join(folder, name+".zip"), into)
	} else {
		run(t, "tar", "--extract", "--directory", into, "--file", filepath.Join(folder, name+".tar.gz"))
	}
	return filepath.Join(into, name)
}

var systems = []string{"linux_amd64", "linux_arm64", "linux_armv7", "darwin_amd64", "darwin_arm64", "windows_amd64", "windows_arm64"}

// wanted are the names of all files of a release.
func wanted(version, client string) []string {
	of := strings.NewReplacer("VERSION", version, "CLIENT", client, "PLUGIN", strings.SplitN(version, "-", 2)[0])
	names := []string{"SHA256SUMS"}
	for _, name := range []string{
		"millrace_VERSION_amd64.deb", "millrace_VERSION_arm64.deb", "millrace_VERSION_armhf.deb",
		"millrace-VERSION-1.x86_64.rpm", "millrace-VERSION-1.aarch64.rpm", "millrace-VERSION-1.armv7hl.rpm",
		"millrace-VERSION.x86_64.apk", "millrace-VERSION.aarch64.apk", "millrace-VERSION.armv7.apk",
		"millrace_VERSION_image.tar", "millrace-chart-VERSION.tgz", "rabbitmq_millrace-PLUGIN.ez",
		"millrace_jobs-CLIENT-py3-none-any.whl", "millrace_jobs-CLIENT.tar.gz",
		"millrace-jobs-CLIENT.tgz", "millrace-jobs-CLIENT.gem",
		"millrace-CLIENT.jar", "millrace-CLIENT-sources.jar", "millrace-CLIENT-javadoc.jar", "millrace-CLIENT.pom", "millrace.rb",
	} {
		names = append(names, of.Replace(name))
	}
	for _, system := range systems {
		archive := ".tar.gz"
		if strings.HasPrefix(system, "windows") {
			archive = ".zip"
		}
		name := "millrace_" + version + "_" + system
		names = append(names, name+archive, name+".cdx.json")
	}
	return names
}

func TestNames(t *testing.T) {
	folder, version := dist(t)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	require.ElementsMatch(t, wanted(version, clientVersion(t)), found)
}

func TestSums(t *testing.T) {
	folder, version := dist(t)
	text, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	require.NoError(t, err)
	for _, name := range wanted(version, clientVersion(t)) {
		if name != "SHA256SUMS" {
			require.Equal(t, 1, strings.Count(string(text), "  "+name+"\n"), name)
		}
	}
	run(t, "env", "--chdir", folder, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
}

// Each archive has a static program for its system, and what a user needs beside it.
func TestArchives(t *testing.T) {
	for _, system := range systems {
		t.Run(system, func(t *testing.T) {
			tree := unpacked(t, system)
			require.Equal(t, system, strings.Join(target(t, tree), "_"))
			files := []string{"LICENSE", "THIRD-PARTY-LICENSES"}
			if !strings.HasPrefix(system, "windows") {
				files = append(files, "man/man1/millrace-serve.1", "completions/millrace.bash", "completions/_millrace", "completions/millrace.fish")
			}
			if strings.HasPrefix(system, "linux") {
				files = append(files, "systemd/millrace.service", "systemd/millrace-worker@.service")
			}
			for _, name := range files {
				require.FileExists(t, filepath.Join(tree, filepath.FromSlash(name)))
			}
		})
	}
}

// target returns the system and the architecture of the program in a folder.
func target(t *testing.T, tree string) []string {
	t.Helper()
	if file, err := elf.Open(filepath.Join(tree, "millrace")); err == nil {
		for _, part := range file.Progs {
			require.NotEqual(t, elf.PT_INTERP, part.Type, "it is not static")
		}
		return []string{"linux", map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_ARM: "armv7"}[file.Machine]}
	}
	if file, err := macho.Open(filepath.Join(tree, "millrace")); err == nil {
		return []string{"darwin", map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[file.Cpu]}
	}
	file, err := pe.Open(filepath.Join(tree, "millrace.exe"))
	require.NoError(t, err)
	return []string{"windows", map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[file.Machine]}
}

// The programs for other processors run under emulation.
func TestProgramsForLinux(t *testing.T) {
	_, version := dist(t)
	for arch, emulator := range map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static", "armv7": "qemu-arm-static"} {
		command := []string{emulator}
		if arch == runtime.GOARCH {
			command = nil
		}
		command = append(command, filepath.Join(unpacked(t, "linux_"+arch), "millrace"))
		require.Contains(t, run(t, command[0], append(command[1:], "version")...), "millrace v"+version+" (", arch)
		require.Contains(t, run(t, command[0], append(command[1:], "serve", "--help")...), "--amqp-url", arch)
	}
}

// The list of modules of each binary names the version of the binary and of its modules.
func TestModulesOfBinaries(t *testing.T) {
	folder, version := dist(t)
	for _, system := range systems {
		text, err := os.ReadFile(filepath.Join(folder, "millrace_"+version+"_"+system+".cdx.json"))
		require.NoError(t, err)
		var list struct {
			BOMFormat string
			Metadata  struct {
				Component struct{ Name, Version string }
			}

			Components []struct{ Name, Version string }
		}
		require.NoError(t, json.Unmarshal(text, &list))
		require.Equal(t, "CycloneDX", list.BOMFormat)
		require.Equal(t, "v"+version, list.Metadata.Component.Version)
		versions := map[string]string{}
		for _, component := range list.Components {
			versions[component.Name] = component.Version
		}
		require.Contains(t, versions, "github.com/cockroachdb/pebble/v2", system)
		require.Contains(t, versions, "github.com/rabbitmq/amqp091-go", system)
		require.Greater(t, len(versions), 30, system)
	}
}
