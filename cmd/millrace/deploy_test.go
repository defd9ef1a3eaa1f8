package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// The flags, variables and metrics in deploy/ and docker-compose.yml must exist.

func deployed(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
	require.NoError(t, err)
	return string(text)
}

// known are the flags and variables that a command has.
func known(t *testing.T, command string) (flags, variables []string) {
	t.Helper()
	var root commands
	parser, err := program().Parser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	all := parser.Model.Flags
	for _, node := range parser.Model.Children {
		if node.Name == command {
			all = append(all, node.Flags...)
		}
	}
	for _, f := range all {
		flags, variables = append(flags, "--"+f.Name), append(variables, f.Envs...)
	}
	return flags, variables
}

// withoutComments returns the lines that take effect.
func withoutComments(text string) string {
	return regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(text, "")
}

// ours returns the lines that configure millrace itself: other programs have flags of their own.
func ours(path, text string) string {
	switch path {
	case "deploy/Dockerfile":
		_, after, _ := strings.Cut(text, "ENTRYPOINT")
		return after
	case "deploy/compose-cluster.yaml":
		_, after, _ := strings.Cut(text, "x-millrace:")
		return after
	case "docker-compose.yml":
		_, after, _ := strings.Cut(text, "  millrace:")
		return after
	}
	return text
}

func TestDeployedFlagsExist(t *testing.T) {
	for path, least := range map[string]int{
		"deploy/Dockerfile": 1, "docker-compose.yml": 4, "deploy/compose-cluster.yaml": 4, "deploy/millrace.service": 3, "deploy/millrace-worker@.service": 3, "deploy/kubernetes.yaml": 8,
	} {
		command := "serve"
		if strings.Contains(path, "worker") {
			command = "worker"
		}
		flags, variables := known(t, command)
		text := withoutComments(deployed(t, path))
		said := regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(ours(path, text), -1)
		require.GreaterOrEqual(t, len(said), least, path)
		for _, flag := range said {
			require.Contains(t, flags, flag, path)
		}
		for _, name := range regexp.MustCompile(`MILLRACE_[A-Z_]+`).FindAllString(text, -1) {
			if name != "MILLRACE_PASSWORD" && name != "MILLRACE_COOKIE" { // of the Compose files
				require.Contains(t, variables, name, path)
			}
		}
	}
}

func TestContainer(t *testing.T) {
	text := withoutComments(deployed(t, "deploy/Dockerfile"))
	final := text[strings.LastIndex(text, "FROM "):]
	require.True(t, strings.HasPrefix(final, "FROM scratch\n"), "there is a shell in it")
	require.Contains(t, text, "CGO_ENABLED=0", "it is not static")
	require.Regexp(t, `(?m)^USER [1-9]`, final, "it runs as root")
	require.Regexp(t, `(?m)^HEALTHCHECK .*CMD \["/millrace", "health", "ready"\]$`, final)

	for path, sidecars := range composeFiles {
		compose := composed(t, path)
		for name, service := range compose.Services {
			for _, port := range service.Ports {
				require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: any host can connect to %s of %s", path, port, name)
			}
			for _, volume := range service.Volumes {
				volume, _, _ = strings.Cut(volume, ":")
				require.Contains(t, compose.Volumes, volume, path)
			}
			for other := range service.DependsOn {
				require.Contains(t, compose.Services, other, path)
			}
			for _, config := range service.Configs {
				require.NotEmpty(t, compose.Configs[config.Source].Content, path)
			}
		}
		for _, name := range sidecars {
			var root commands
			parser, err := program().Parser(&root, io.Discard, io.Discard)
			require.NoError(t, err)
			_, err = parser.Parse(compose.Services[name].Command)
			require.NoError(t, err, "millrace does not take the command of %s in %s", name, path)
			require.Equal(t, "broker", root.Serve.Auth)
		}
	}
}

// composeFiles are the Compose files, with the names of the sidecars in each.
var composeFiles = map[string][]string{
	"docker-compose.yml":          {"millrace"},
	"deploy/compose-cluster.yaml": {"millrace-1", "millrace-2", "millrace-3"},
}

// composeFile is the part of a Compose file that the tests need.
type composeFile struct {
	Services map[string]struct {
		Command     []string
		Hostname    string
		Ports       []string
		Volumes     []string
		Environment map[string]string
		DependsOn   map[string]any `yaml:"depends_on"`
		Configs     []struct{ Source, Target string }
	}
	Configs map[string]struct{ Content string }
	Volumes map[string]any
}

func composed(t *testing.T, path string) (file composeFile) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(deployed(t, path)), &file))
	return file
}

// The nodes of the cluster have the settings that the docs ask for, and find each other. Each
// sidecar knows all of them.
func TestComposeCluster(t *testing.T) {
	compose := composed(t, "deploy/compose-cluster.yaml")
	settings := compose.Configs["rabbitmq"].Content
	_, wanted, _ := strings.Cut(deployed(t, "docs/clusters.md"), "```ini\n")
	wanted, _, _ = strings.Cut(wanted, "```")
	require.NotEmpty(t, wanted)
	for line := range strings.Lines(wanted) {
		require.Contains(t, settings, line)
	}
	require.Contains(t, compose.Configs["plugins"].Content, "rabbitmq_stream")
	nodes := 0
	for name, service := range compose.Services {
		if service.Hostname == "" {
			continue
		}
		nodes++
		require.Equal(t, name, service.Hostname)
		require.Contains(t, settings, fmt.Sprintf(".nodes.%d = rabbit@%s\n", nodes, fmt.Sprint("rabbitmq-", nodes)))
		for _, sidecar := range composeFiles["deploy/compose-cluster.yaml"] {
			hosts := compose.Services[sidecar].Environment
			require.Contains(t, hosts["MILLRACE_AMQP_URL"], name)
			require.Contains(t, hosts["MILLRACE_MANAGEMENT_URL"], name+":15672")
			require.Contains(t, compose.Services[sidecar].DependsOn, name)
		}
	}
	require.Equal(t, 3, nodes)
}

func TestComposeAcceptsAnyPassword(t *testing.T) {
	const password = "p@s/s#w%rd:?"
	for path, sidecars := range composeFiles {
		services := composed(t, path).Services
		for name, service := range services {
			if set, isBroker := service.Environment["RABBITMQ_DEFAULT_PASS"]; isBroker {
				require.Regexp(t, `^\$\{MILLRACE_PASSWORD:\?[^}]+\}$`, set, "%s in %s gets it unchanged", name, path)
			}
		}
		for name, value := range services[sidecars[0]].Environment {
			t.Setenv(name, strings.ReplaceAll(value, "${MILLRACE_PASSWORD}", password))
		}
		var root commands
		parser, err := program().Parser(&root, io.Discard, io.Discard)
		require.NoError(t, err)
		_, err = parser.Parse(services[sidecars[0]].Command)
		require.NoError(t, err)
		require.Equal(t, []string{"millrace", password}, []string{root.Serve.user(), passwordOf(root.Serve.URL())})
	}
}

// pods is the part of deploy/kubernetes.yaml that the tests need.
type pods struct {
	Spec struct {
		Replicas int
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Containers []container }
		}
	}
}

type container struct {
	Args           []string
	Env            []struct{ Name, Value string }
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	VolumeMounts   []struct {
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct {
		Path    string
		Headers []struct{ Name, Value string } `yaml:"httpHeaders"`
	} `yaml:"httpGet"`
}

// serve takes the command line of deploy/kubernetes.yaml, and its probes have the paths and the
// host name that the API answers.
func TestKubernetes(t *testing.T) {
	var deployment pods
	require.NoError(t, yaml.Unmarshal([]byte(deployed(t, "deploy/kubernetes.yaml")), &deployment))
	require.Equal(t, 2, deployment.Spec.Replicas)
	require.Equal(t, deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Metadata.Labels)
	c := deployment.Spec.Template.Spec.Containers[0]
	for get, path := range map[*probe]string{&c.LivenessProbe: "/healthz", &c.ReadinessProbe: "/readyz"} {
		require.Equal(t, path, get.HTTPGet.Path)
		require.Len(t, get.HTTPGet.Headers, 1)
		require.Equal(t, "Host", get.HTTPGet.Headers[0].Name)
		require.Contains(t, auth.NewHosts("0.0.0.0:15680", nil, nil), get.HTTPGet.Headers[0].Value)
	}

	secrets := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "amqp-password"), []byte("s3cret"), 0o600))
	for _, variable := range c.Env {
		t.Setenv(variable.Name, variable.Value)
	}
	var root commands
	parser, err := program().Parser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	_, err = parser.Parse(strings.Fields(strings.ReplaceAll(strings.Join(c.Args, " "), c.VolumeMounts[1].MountPath, secrets)))
	require.NoError(t, err)
	amqp := root.Serve.URL()
	require.Equal(t, []string{"millrace", "s3cret", "jobs"}, []string{connect.User(amqp), passwordOf(amqp), connect.VHost(amqp)})
	require.Equal(t, c.VolumeMounts[0].MountPath, root.Serve.StateDir)
	listener, err := auth.Listen(t.Context(), strings.Replace(root.Serve.HTTPAddr, "15680", "0", 1), root.Serve.exposure())
	require.NoError(t, err, "an address that is not loopback has conditions")
	require.NoError(t, listener.Close())
}

func passwordOf(u hosts.URL) string {
	password, _ := connect.Userinfo(u).Password()
	return password
}

// The build of the image must not leave out a part of the binary.
func TestContainerBuildContext(t *testing.T) {
	left := strings.Fields(withoutComments(deployed(t, ".dockerignore")))
	require.Subset(t, left, []string{".git", ".cache"}, "they are large, and change often")
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", ".")
	packages, err := list.Output()
	require.NoError(t, err)
	require.Contains(t, string(packages), "/httpapi\n")
	for path := range strings.FieldsSeq(string(packages)) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, "github.com/millrace-jobs/millrace/"), "/")
		require.NotContains(t, left, folder, path)
	}
}

func TestUnit(t *testing.T) {
	for _, path := range []string{"deploy/millrace.service", "deploy/millrace-worker@.service"} {
		requireUnit(t, deployed(t, path))
	}
	documented := regexp.MustCompile("(?s)```ini\n([^`]*\n\\[Service\\]\n[^`]*)```").FindAllStringSubmatch(deployed(t, "docs/install.md"), -1)
	require.Len(t, documented, 1, "there is one unit")
	require.Equal(t, deployed(t, "deploy/millrace.service"), documented[0][1])
}

func requireUnit(t *testing.T, text string) {
	t.Helper()
	for _, section := range []string{"[Unit]", "[Service]", "[Install]"} {
		require.Contains(t, text, section+"\n")
	}
	for _, line := range strings.Split(withoutComments(text), "\n") {
		require.Regexp(t, `^$|^\[\w+\]$|^[A-Z]\w+=`, line)
	}
	require.Contains(t, text, "\nDynamicUser=yes\n")
}

// TestUnitStartsWithDocumentedSettings has serve read the unit's command line, with what systemd
// inserts into it, and the documented file.
func TestUnitStartsWithDocumentedSettings(t *testing.T) {
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/millrace (.*)$`).FindStringSubmatch(deployed(t, "deploy/millrace.service"))
	require.NotNil(t, line)
	settings := regexp.MustCompile("(?s)```yaml\n# /etc/millrace/millrace.yaml\n(.*?)```").FindStringSubmatch(deployed(t, "docs/install.md"))
	require.NotNil(t, settings)
	credentials := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "amqp-password"), []byte("s3cret\n"), 0o600))
	args := strings.NewReplacer("/etc/millrace/millrace.yaml", clitest.File(t, settings[1]), "${STATE_DIRECTORY}", "/var/lib/millrace",
		"${CREDENTIALS_DIRECTORY}", credentials).Replace(line[1])
	var root commands
	parser, err := program().Parser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	_, err = parser.Parse(strings.Fields(args))
	require.NoError(t, err)
	amqp := root.Serve.URL()
	require.Equal(t, []string{"millrace", "s3cret", "jobs", "/var/lib/millrace"}, []string{connect.User(amqp), passwordOf(amqp), connect.VHost(amqp), root.Serve.StateDir})
}

// TestWorkerUnitChecksDocumentedFile has worker read the unit's command line with what systemd
// inserts into it, the settings that the packages have, and the documented file of commands.
func TestWorkerUnitChecksDocumentedFile(t *testing.T) {
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/millrace (.*)$`).FindStringSubmatch(deployed(t, "deploy/millrace-worker@.service"))
	require.NotNil(t, line)
	commands := regexp.MustCompile("(?s)```yaml\n(queues: .*?)```").FindStringSubmatch(deployed(t, "docs/commands-as-jobs.md"))
	require.NotNil(t, commands)
	credentials := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(credentials, "worker-password"), []byte("s3cret\n"), 0o600))
	args := strings.NewReplacer("/etc/millrace/worker.yaml", clitest.File(t, deployed(t, "deploy/packages/worker.yaml")),
		"/etc/millrace/workers/%i.yaml", clitest.File(t, commands[1]), "${CREDENTIALS_DIRECTORY}", credentials).Replace(line[1])
	r := millrace(t, append(strings.Fields(args), "--check")...)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "2 classes")
}

var metricName = regexp.MustCompile(`millrace_[a-z_]+[a-z]`)

// metricNames returns the metrics that docs/monitoring.md lists.
func metricNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, line := range strings.Split(deployed(t, "docs/monitoring.md"), "\n") {
		if name, isRow := strings.CutPrefix(line, "| `millrace_"); isRow {
			name, _, _ = strings.Cut(name, "`")
			names = append(names, "millrace_"+name)
		}
	}
	require.Greater(t, len(names), 40)
	return names
}

func requireMetrics(t *testing.T, path, text string, least int) {
	t.Helper()
	names := metricNames(t)
	said := metricName.FindAllString(text, -1)
	require.GreaterOrEqual(t, len(said), least, path)
	for _, name := range said {
		base := name
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, part)
		}
		require.True(t, slices.Contains(names, name) || slices.Contains(names, base), "%s: there is no metric %s", path, name)
	}
}

func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(deployed(t, "deploy/prometheus/alerts.yaml")), &rules))
	tests := deployed(t, "deploy/prometheus/alerts_test.yaml")
	require.NotEmpty(t, rules.Groups[0].Rules)
	for _, r := range rules.Groups[0].Rules {
		requireMetrics(t, r.Alert, r.Expr, 1)
		require.Contains(t, tests, "name: "+r.Alert+" fires", "no test has it fire")
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		_, target, found := strings.Cut(r.Annotations["runbook_url"], "/blob/main/docs/")
		require.True(t, found, r.Alert)
		page, anchor, found := strings.Cut(target, "#")
		require.True(t, found, r.Alert)
		heading := regexp.MustCompile(`(?mi)^##+ ` + strings.ReplaceAll(anchor, "-", " ") + `$`)
		require.Regexp(t, heading, deployed(t, "docs/"+page), r.Alert)
	}
}

func TestDashboard(t *testing.T) {
	text := deployed(t, "deploy/grafana/millrace.json")
	var board struct {
		Panels []struct {
			ID      int
			Type    string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &board))
	ids := map[int]bool{}
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0)
		for _, target := range p.Targets {
			requireMetrics(t, "the dashboard", target.Expr, 1)
		}
	}
	requireMetrics(t, "the dashboard", text, 40)
}
