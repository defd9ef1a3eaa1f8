package localbroker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// helperDir makes the test binary start a node in that directory, print the process ids and wait
// until it is killed, like a program that uses this package.
const helperDir = "LOCALBROKER_HELPER_DIR"

func helper(dir string) {
	b, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(b.Pid(), b.epmd.pid())
	if os.Getenv("LOCALBROKER_HELPER_STOP") != "" {
		if err := b.Stop(context.Background()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// runHelper runs the helper from a copy that any user may read, because only root may read the test
// binary.
func runHelper(t *testing.T, cmd *exec.Cmd) (node, epmd int) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StdinPipe() // stays open: the helper waits for its end
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscan(line, &node, &epmd)
	require.NoError(t, err, line)
	return node, epmd
}

func TestKilledParentLeavesNoProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+t.TempDir())
	node, epmd := runHelper(t, cmd)
	require.True(t, running(node))
	require.True(t, running(epmd))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	requireGone(t, node)
	requireGone(t, epmd)
}

func TestRunAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("all other tests run as an ordinary user already")
	}
	const unprivileged = 65534
	dir, err := os.MkdirTemp("", "localbroker")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	program := filepath.Join(dir, "program")
	binary, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, binary, 0o755))
	require.NoError(t, os.Chown(dir, unprivileged, unprivileged))

	cmd := exec.Command(program)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), helperDir + "=" + filepath.Join(dir, "broker"), "LOCALBROKER_HELPER_STOP=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	node, epmd := runHelper(t, cmd)
	require.NoError(t, cmd.Wait())
	requireGone(t, node)
	requireGone(t, epmd)
}

func TestProcessThatCannotStart(t *testing.T) {
	_, err := startProcess(exec.Command(filepath.Join(t.TempDir(), "missing")))
	require.ErrorIs(t, err, os.ErrNotExist)
	var never *process
	require.False(t, never.alive())
	require.Zero(t, never.pid())
	require.NoError(t, never.kill())
}

// running reports whether a process runs, and is not just waiting to be reaped.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !running(pid) }, time.Minute, 10*time.Millisecond)
}

// listeners returns the TCP addresses on which a process listens.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	var found []string
	own := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			own[target] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			const listen = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listen && own["socket:["+f[9]+"]"] {
				found = append(found, address(t, f[1]))
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

// address converts the kernel's hexadecimal notation, as far as these tests need it.
func address(t *testing.T, hex string) string {
	t.Helper()
	ip, port, _ := strings.Cut(hex, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err)
	known := map[string]string{"0100007F": "127.0.0.1", "0B00007F": host(0), "0C00007F": host(1), "0D00007F": host(2), "00000000000000000000000001000000": "[::1]"}
	if name, ok := known[ip]; ok {
		ip = name
	}
	return fmt.Sprintf("%s:%d", ip, n)
}
