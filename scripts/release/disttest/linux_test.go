package disttest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// common are files that each package for Linux has.
var common = []string{
	"/usr/bin/millrace", "/etc/millrace/millrace.yaml", "/usr/share/man/man1/millrace-serve.1.gz",
	"/usr/share/bash-completion/completions/millrace", "/usr/share/fish/vendor_completions.d/millrace.fish",
	"/usr/share/doc/millrace/THIRD-PARTY-LICENSES",
}

// ofServices are the files of the systemd services.
var ofServices = []string{
	"/usr/lib/systemd/system/millrace.service", "/usr/lib/systemd/system/millrace-worker@.service", "/etc/millrace/worker.yaml",
}

func TestRPM(t *testing.T) {
	folder, version := dist(t)
	for arch, machine := range map[string]string{"x86_64": "x86_64", "aarch64": "aarch64", "armv7hl": "armv7hl"} {
		file := filepath.Join(folder, "millrace-"+version+"-1."+arch+".rpm")
		query := func(flags ...string) string { return run(t, "rpm", append(append([]string{"-qp"}, flags...), file)...) }
		require.Equal(t, "millrace "+strings.Replace(version, "-", "~", 1)+" 1 "+machine+" Apache-2.0\n",
			query("--queryformat", "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE}\n"))
		files := strings.Split(query("--list"), "\n")
		require.Subset(t, files, slices.Concat(common, ofServices, []string{"/usr/share/zsh/site-functions/_millrace"}))
		require.NotContains(t, files, "/usr/bin", "the package does not own the system's folders")
		require.Equal(t, "/etc/millrace/millrace.yaml\n/etc/millrace/worker.yaml\n", query("--configfiles"))
		require.Contains(t, query("--recommends"), "rabbitmq-server")
		// rpm prints each script below a line that names it.
		scripts := regexp.MustCompile(`(?m)^(\w+) scriptlet \(using /bin/sh\):\n`).Split(query("--scripts"), -1)[1:]
		for i, name := range []string{"rpm-post", "rpm-preun", "rpm-postun"} {
			want, err := os.ReadFile("../../../deploy/packages/" + name)
			require.NoError(t, err)
			require.Equal(t, strings.TrimSpace(string(want)), strings.TrimSpace(scripts[i]))
		}
		require.Len(t, scripts, 3)
		run(t, "rpm", "--checksig", "--nosignature", file)
	}
}

// Alpine has no systemd, so its package has no unit. An .apk is a gzipped tar in several parts.
func TestAPK(t *testing.T) {
	folder, version := dist(t)
	for _, arch := range []string{"x86_64", "aarch64", "armv7"} {
		into := t.TempDir()
		run(t, "tar", "--extract", "--warning=no-unknown-keyword", "--directory", into, "--file", filepath.Join(folder, "millrace-"+version+"."+arch+".apk"))
		about, err := os.ReadFile(filepath.Join(into, ".PKGINFO"))
		require.NoError(t, err)
		require.Contains(t, "\n"+string(about), "\npkgname = millrace\n")
		require.Contains(t, string(about), "\narch = "+arch+"\n")
		require.Regexp(t, `\npkgver = \d+\.\d+\.\d+(_(alpha|beta|pre|rc)\d*)?\n`, string(about))
		for _, name := range append(common, "/usr/share/licenses/millrace/LICENSE") {
			require.FileExists(t, filepath.Join(into, name))
		}
		require.NoDirExists(t, filepath.Join(into, "usr", "lib"))
	}
}

// The other Debian packages differ only in the program, so that dpkg's own check is enough.
func TestDebForOtherProcessors(t *testing.T) {
	folder, version := dist(t)
	for _, arch := range []string{"amd64", "arm64", "armhf"} {
		file := filepath.Join(folder, "millrace_"+version+"_"+arch+".deb")
		require.Equal(t, "millrace "+strings.Replace(version, "-", "~", 1)+" "+arch+" rabbitmq-server | lavinmq\n",
			run(t, "dpkg-deb", "--show", "--showformat", "${Package} ${Version} ${Architecture} ${Recommends}\n", file))
		into := t.TempDir()
		run(t, "dpkg-deb", "--extract", file, into)
		for _, name := range slices.Concat(common, ofServices, []string{"/usr/share/doc/millrace/copyright"}) {
			require.FileExists(t, filepath.Join(into, name))
		}
		require.DirExists(t, filepath.Join(into, "etc", "millrace", "workers"))
	}
}

// Debian's checker finds no fault. deploy/packages/lintian-overrides says which tags do not apply,
// and why.
func TestLintian(t *testing.T) {
	folder, version := dist(t)
	for _, arch := range []string{"amd64", "arm64", "armhf"} {
		run(t, "lintian", "--fail-on=error,warning", "--tag-display-limit=0", filepath.Join(folder, "millrace_"+version+"_"+arch+".deb"))
	}
}

// systemd accepts the units, and finds little that the services could do to the machine.
func TestUnits(t *testing.T) {
	folder, version := dist(t)
	into := t.TempDir()
	run(t, "dpkg-deb", "--extract", filepath.Join(folder, "millrace_"+version+"_amd64.deb"), into)
	units := filepath.Join(into, "usr", "lib", "systemd", "system")
	for file, unit := range map[string]struct{ instance, command string }{
		"millrace.service":         {"millrace.service", "--config /etc/millrace/millrace.yaml serve "},
		"millrace-worker@.service": {"millrace-worker@images.service", "--config /etc/millrace/worker.yaml worker --exec /etc/millrace/workers/%i.yaml "},
	} {
		text, err := os.ReadFile(filepath.Join(units, file))
		require.NoError(t, err)
		require.Contains(t, string(text), "\nExecStart=/usr/bin/millrace "+unit.command)
		require.NotContains(t, string(text), "/etc/systemd", "the administrator's folder")
		// verify looks for the program, which is not installed here.
		program := filepath.Join(into, "usr", "bin", "millrace")
		require.NoError(t, os.WriteFile(filepath.Join(units, file), []byte(strings.ReplaceAll(string(text), "/usr/bin/millrace", program)), 0o600))
		instance := filepath.Join(units, unit.instance)
		require.Empty(t, run(t, "systemd-analyze", "verify", "--man=no", instance))
		// The threshold is ten times the exposure, which is at most 10.0.
		run(t, "systemd-analyze", "security", "--offline=true", "--threshold=14", instance)
	}
}
