package readmetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

var javaFile = regexp.MustCompile("(?ms)^```(?:java|xml) file=(\\S+)\n(.*?)^```$")

// TestJavaClient runs the programs of the Java client's README as they are written, in an empty Maven project that takes the package from
// the local repository, into which it is installed as it would be published.
func TestJavaClient(t *testing.T) {
	t.Parallel()
	s := serve(t)
	maven := func(dir string, args ...string) *exec.Cmd {
		cmd := s.command(t, filepath.Join(root, "scripts", "mvn.sh"), args...)
		cmd.Dir = dir
		return cmd
	}
	run := func(cmd *exec.Cmd) string {
		t.Helper()
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, out)
		return string(out)
	}
	source := t.TempDir() // a copy, for Maven builds where the source is
	require.NoError(t, os.CopyFS(filepath.Join(source, "src", "main"), os.DirFS(filepath.Join(root, "clients", "java", "src", "main"))))
	require.NoError(t, os.WriteFile(filepath.Join(source, "pom.xml"), []byte(document(t, "clients/java/pom.xml")), 0o600))
	run(maven(source, "install"))

	project := t.TempDir()
	files := javaFile.FindAllStringSubmatch(document(t, "clients/java/README.md"), -1)
	require.Len(t, files, 4)
	for _, file := range files {
		path := filepath.Join(project, file[1])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(file[2]), 0o600))
	}
	run(maven(project, "compile"))
	require.Contains(t, run(maven(project, "exec:java", "-Dexec.mainClass=GreetCheck")), "[Ann], 1 drained, [Ann] greeted")
	out := start(t, maven(project, "exec:java", "-Dexec.mainClass=Greeter"))
	run(maven(project, "exec:java", "-Dexec.mainClass=Enqueue"))
	for _, name := range []string{"Ann", "Bob", "Cleo", "Dan", "Eve"} {
		brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), "Hello "+name+", attempt 1 of ") }, "%s is greeted", name)
	}
}
