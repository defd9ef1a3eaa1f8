package disttest

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// helm runs the program helm, and returns its output and what it says beside it.
func helm(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	program := os.Getenv("MILLRACE_HELM")
	require.NotEmpty(t, program, "run make test-packages, or set MILLRACE_HELM to the program helm")
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

func chart(t *testing.T) string {
	t.Helper()
	folder, version := dist(t)
	return filepath.Join(folder, "millrace-chart-"+version+".tgz")
}

// kinds are the objects that the chart makes. Decoding is strict: a member that Kubernetes does not
// know is an error.
var kinds = map[string]func() any{
	"apps/v1 StatefulSet":                     func() any { return new(apps.StatefulSet) },
	"v1 Service":                              func() any { return new(core.Service) },
	"v1 ConfigMap":                            func() any { return new(core.ConfigMap) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networking.Ingress) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
}

// documents returns what the chart renders with a file of values.
func documents(t *testing.T, values string) []string {
	t.Helper()
	out, said, err := helm(t, "template", "--kube-version=1.31.0", "millrace", chart(t), "--namespace", "jobs", "--values", values)
	require.NoError(t, err, said)
	return strings.Split("\n"+out, "\n---\n")
}

// rendered returns the objects of the chart with a file of values, by kind and name.
func rendered(t *testing.T, values string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for _, document := range documents(t, values) {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &head), document)
		if head.Kind == "" {
			continue
		}
		create, known := kinds[head.APIVersion+" "+head.Kind]
		require.True(t, known, "%s %s", head.APIVersion, head.Kind)
		object := create()
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), object), document)
		name := head.Kind + "/" + head.Metadata.Name
		require.NotContains(t, objects, name)
		objects[name] = object
	}
	return objects
}

func TestChart(t *testing.T) {
	files, err := filepath.Glob("testdata/values/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, said, err := helm(t, "lint", "--strict", "--kube-version=1.31.0", "--values", file, chart(t))
			require.NoError(t, err, "%s%s", out, said)
			objects := rendered(t, file)
			for _, object := range objects {
				if set, is := object.(*apps.StatefulSet); is {
					requireSidecars(t, set, objects)
				}
			}
		})
	}
}

var update = flag.Bool("update", false, "write the golden files of the chart")

// TestChartIsUnchanged compares what the chart renders with golden files. They show in a review
// what a change of a template does. After one, `make golden` writes them. They leave out the
// alerts and the dashboard, which TestChartHasAlerts compares with their sources.
func TestChartIsUnchanged(t *testing.T) {
	_, version := dist(t)
	files, err := filepath.Glob("testdata/values/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		kept := slices.DeleteFunc(documents(t, file), func(document string) bool {
			return strings.Contains(document, "\nkind: PrometheusRule\n") || strings.Contains(document, "\n  name: millrace-dashboard\n")
		})
		got := strings.TrimSpace(strings.ReplaceAll(strings.Join(kept, "\n---\n"), version, "VERSION")) + "\n"
		golden := filepath.Join("testdata", "golden", filepath.Base(file))
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), got, golden)
	}
}

// requireSidecars checks what every rendered chart must have.
func requireSidecars(t *testing.T, set *apps.StatefulSet, objects map[string]any) {
	t.Helper()
	pod := set.Spec.Template.Spec
	require.Equal(t, set.Spec.Selector.MatchLabels, objects["Service/"+set.Name].(*core.Service).Spec.Selector)
	require.Contains(t, objects, "Service/"+set.Spec.ServiceName)
	require.Equal(t, apps.ParallelPodManagement, set.Spec.PodManagementPolicy)
	for name, value := range set.Spec.Selector.MatchLabels {
		require.Equal(t, value, set.Spec.Template.Labels[name])
	}
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.False(t, *pod.AutomountServiceAccountToken)
	c := pod.Containers[0]
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.NotContains(t, c.Image, "latest")
	require.Equal(t, []string{"/healthz", "/readyz"}, []string{c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path})

	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		volumes[claim.Name] = true
	}
	for _, mount := range c.VolumeMounts {
		require.True(t, volumes[mount.Name], mount.Name)
	}
	requireSettings(t, objects["ConfigMap/"+set.Name].(*core.ConfigMap).Data["millrace.yaml"])
}

// requireSettings has the released program read the settings of the chart.
func requireSettings(t *testing.T, settings string) {
	t.Helper()
	secrets := t.TempDir()
	for name, text := range map[string]string{"amqp-password": "s3cret", "session-key": strings.Repeat("k", 32), "tokens": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), []byte(text), 0o600))
	}
	settings = strings.NewReplacer("/etc/millrace/secret/", secrets+"/", "/etc/millrace/tokens/", secrets+"/").Replace(settings)
	file := filepath.Join(secrets, "millrace.yaml")
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	require.NotContains(t, settings, "s3cret")
	out := run(t, filepath.Join(unpacked(t, "linux_amd64"), "millrace"), "--config", file, "config")
	require.Contains(t, out, "/var/lib/millrace")
}

func TestChartKeepsOthersOut(t *testing.T) {
	closed := rendered(t, "testdata/values/minimal.yaml")["NetworkPolicy/millrace"].(*networking.NetworkPolicy)
	require.Empty(t, closed.Spec.Ingress)
	require.Equal(t, []networking.PolicyType{networking.PolicyTypeIngress}, closed.Spec.PolicyTypes)
	for _, file := range []string{"ingress", "monitoring"} {
		policy := rendered(t, "testdata/values/"+file+".yaml")["NetworkPolicy/millrace"].(*networking.NetworkPolicy)
		require.Len(t, policy.Spec.Ingress, 1)
		require.Len(t, policy.Spec.Ingress[0].From, 1)
	}
}

func TestChartHasAlerts(t *testing.T) {
	objects := rendered(t, "testdata/values/monitoring.yaml")
	rule := objects["PrometheusRule/millrace"].(*monitoring.PrometheusRule)
	text, err := os.ReadFile("../../../deploy/prometheus/alerts.yaml")
	require.NoError(t, err)
	var want monitoring.PrometheusRuleSpec
	require.NoError(t, yaml.UnmarshalStrict(text, &want))
	require.Equal(t, want, rule.Spec)
	board, err := os.ReadFile("../../../deploy/grafana/millrace.json")
	require.NoError(t, err)
	require.JSONEq(t, string(board), objects["ConfigMap/millrace-dashboard"].(*core.ConfigMap).Data["millrace.json"])
	monitor := objects["ServiceMonitor/millrace"].(*monitoring.ServiceMonitor)
	for name, value := range monitor.Spec.Selector.MatchLabels {
		require.Equal(t, value, objects["Service/millrace-pods"].(*core.Service).Labels[name])
	}
}

// Wrong values are refused with an error that names them.
func TestChartRefusesWrongValues(t *testing.T) {
	for values, want := range map[string]string{
		"image.repository=":                       "image.repository",
		"broker.amqpURL=":                         "broker.amqpURL",
		"broker.amqpURL=amqp://user:secret@host/": "amqpURL",
		"broker.amqpURL=redis://host/":            "amqpURL",
		"existingSecret.name=":                    "existingSecret.name",
		"existingSecret.password=s3cret":          "password",
		"settings.amqp-password=s3cret":           "settings",
		"settings.http-addr=0.0.0.0:80":           "the chart sets http-addr itself",
		"replicas=0":                              "replicas",
		"http.auth=none":                          "auth",
		"http.auth=token":                         "http.tokensSecret.name",
		"http.prefix=jobs":                        "prefix",
		"ingress.enabled=true":                    "ingress.host",
		"metrics.enabled=false,metrics.serviceMonitor.enabled=true": "needs metrics.enabled",
	} {
		_, said, err := helm(t, "template", "--kube-version=1.31.0", "millrace", chart(t), "--values", "testdata/values/minimal.yaml", "--set", values)
		require.Error(t, err, values)
		require.Contains(t, said, want, values)
	}
}
