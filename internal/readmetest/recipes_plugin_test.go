//go:build plugin

package readmetest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// TestDelayedRecipes runs the programs of the page that need the plugin, one after another, because
// they have the same queue.
func TestDelayedRecipes(t *testing.T) {
	plugin := os.Getenv("MILLRACE_TEST_PLUGIN")
	require.NotEmpty(t, plugin, "MILLRACE_TEST_PLUGIN must name the plugin's .ez file: run `make test-plugin`")
	s := serveOn(t, brokertest.Extended(t, localbroker.Extension{
		Plugins: []string{"rabbitmq_millrace"}, Files: []string{plugin}, Config: "millrace.sidecar = /bin/false\n",
	}), "--deliver-to", ".*")
	blocks := readmeBlocks(t, recipesPage)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *sidecar, map[string]string)
	}{
		{"Debian's pika", pikaRecipe},
		{"newest pika", newestPikaRecipe},
		{"Spring AMQP", springRecipe},
		{"Node", nodeRecipe},
		{"PHP", phpRecipe},
		{"Celery", celeryRecipe},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The program before was stopped when it had printed a message, maybe before it
			// acknowledged it.
			_, err := s.vhost.Channel(t).QueueDelete("reminders", false, false, false)
			require.NoError(t, err)
			test.run(t, s, blocks)
		})
	}
}

func pikaRecipe(t *testing.T, s *sidecar, blocks map[string]string) {
	s.delays(t, start(t, s.program(t, blocks, "orders.py")), blocks["orders.py.out"])
}

func newestPikaRecipe(t *testing.T, s *sidecar, blocks map[string]string) {
	folder := s.project(t, blocks, "orders.py")
	s.delays(t, start(t, s.inEnvironment(t, folder, "python", "python -u orders.py")), blocks["orders.py.out"])
}

func springRecipe(t *testing.T, s *sidecar, blocks map[string]string) {
	folder := s.project(t, blocks, "shop/Shop.java", "application.properties")
	jars := filepath.Join(folder, "jars")
	tool(t, filepath.Join(root, "scripts", "recipes"), nil, filepath.Join(root, "scripts", "mvn.sh"), "dependency:copy-dependencies", "-DoutputDirectory="+jars)
	path := folder + ":" + filepath.Join(jars, "*")
	tool(t, folder, nil, "javac", "-parameters", "-cp", path, filepath.Join("shop", "Shop.java"))
	cmd := s.command(t, "java", "-cp", path, "shop.Shop")
	cmd.Dir = folder
	s.delays(t, start(t, cmd), blocks["shop/Shop.java.out"])
}

func nodeRecipe(t *testing.T, s *sidecar, blocks map[string]string) {
	s.delays(t, start(t, s.program(t, blocks, "orders.js")), blocks["orders.js.out"])
}

func phpRecipe(t *testing.T, s *sidecar, blocks map[string]string) {
	const local = `"localhost", 5672, "guest", "guest"`
	broker, err := url.Parse(s.vhost.AMQPURL())
	require.NoError(t, err)
	password, _ := broker.User.Password()
	here := fmt.Sprintf("%q, %s, %q, %q, %q", broker.Hostname(), broker.Port(), broker.User.Username(), password, s.vhost.Name)
	require.Contains(t, blocks["orders.php"], local)
	folder := s.project(t, map[string]string{"orders.php": strings.Replace(blocks["orders.php"], local, here, 1)}, "orders.php")
	s.delays(t, start(t, s.command(t, "php", filepath.Join(folder, "orders.php"))), blocks["orders.php.out"])
}

// celeryRecipe runs with Debian's Celery and with the newest one.
func celeryRecipe(t *testing.T, s *sidecar, blocks map[string]string) {
	lines := commands(blocks["celery.sh"])
	require.Len(t, lines, 1)
	for name, programs := range map[string][]string{
		"Debian's": {"/usr/bin/python3 -m celery", "/usr/bin/python3"},
		"newest":   {"celery", "python"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.vhost.Channel(t).QueueDeclare("transient", false, false, false, false, nil); err != nil && name == "Debian's" {
				t.Skip("Celery 5.2 needs transient queues, which this RabbitMQ refuses")
			}
			folder := s.project(t, blocks, "tasks.py", "send.py")
			line := strings.Replace(lines[0], "celery", programs[0], 1)
			out := start(t, s.inEnvironment(t, folder, "recipes", line))
			brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), " ready.") }, "the worker is ready")
			wrote, err := s.inEnvironment(t, folder, "recipes", programs[1]+" send.py").CombinedOutput()
			require.NoError(t, err, "%s", wrote)
			first, retry, _ := strings.Cut(strings.TrimSpace(blocks["tasks.py.out"]), "\n")
			jid := s.delays(t, out, first)
			brokertest.Eventually(t, func() bool { return s.entry(t, "scheduled-jobs", "millrace.Message") != jid }, "the retry waits")
			brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), retry) }, "the retry runs")
		})
	}
}
