package disttest

import (
	"archive/tar"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

// TestImage reads the image as a registry would, unpacks it, and starts what it is set to start, as
// its user and with nothing else around it.
func TestImage(t *testing.T) {
	folder, version := dist(t)
	at := t.TempDir()
	run(t, "tar", "--extract", "--directory", at, "--file", filepath.Join(folder, "millrace_"+version+"_image.tar"))
	top, err := layout.ImageIndexFromPath(at)
	require.NoError(t, err)
	names, err := top.IndexManifest()
	require.NoError(t, err)
	require.Len(t, names.Manifests, 1)
	require.Equal(t, version, names.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	index, err := top.ImageIndex(names.Manifests[0].Digest)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Equal(t, version, manifest.Annotations["org.opencontainers.image.version"])

	var platforms []string
	for _, entry := range manifest.Manifests {
		image, err := index.Image(entry.Digest)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, entry.Platform.String(), config.Platform().String())
		platforms = append(platforms, entry.Platform.String())
		requireImage(t, version, image, config)
	}
	require.ElementsMatch(t, []string{"linux/amd64", "linux/arm64", "linux/arm/v7"}, platforms)
}

func requireImage(t *testing.T, version string, image v1.Image, config *v1.ConfigFile) {
	t.Helper()
	require.Equal(t, "65532:65532", config.Config.User)
	require.Equal(t, []string{"/millrace"}, config.Config.Entrypoint)
	require.Equal(t, version, config.Config.Labels["org.opencontainers.image.version"])
	require.NotEmpty(t, config.Config.Labels["org.opencontainers.image.revision"])
	root := filesystem(t, image)
	certificates, err := os.ReadFile(filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(certificates), "BEGIN CERTIFICATE"), 80)

	arch := config.Architecture + config.Variant
	program, err := os.ReadFile(filepath.Join(root, "millrace"))
	require.NoError(t, err)
	packed, err := os.ReadFile(filepath.Join(unpacked(t, "linux_"+arch), "millrace"))
	require.NoError(t, err)
	require.True(t, string(packed) == string(program), "%s: the image has another program than the archive", arch)
	if arch != "amd64" {
		return
	}
	in := func(args ...string) string {
		return run(t, "chroot", append([]string{"--userspec=" + config.Config.User, root}, args...)...)
	}
	require.Contains(t, in("/millrace", "version"), "millrace v"+version+" (")
	require.Contains(t, in(append([]string{"/millrace", "config"}, config.Config.Cmd[1:]...)...), config.Config.Cmd[2])
	requireHealthcheck(t, root, config)
}

// requireHealthcheck runs the image's health check without a sidecar and beside one that has no
// broker.
func requireHealthcheck(t *testing.T, root string, config *v1.ConfigFile) {
	t.Helper()
	check := config.Config.Healthcheck
	require.Equal(t, []string{"CMD", "/millrace", "health", "ready"}, check.Test)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	in := func(args []string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "chroot", append([]string{"--userspec=" + config.Config.User, root}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "MILLRACE_HTTP_ADDR=" + free.Addr().String(), "MILLRACE_AMQP_URL=amqp://127.0.0.1:1/"}
		return cmd
	}
	said, err := in(check.Test[1:]).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "no sidecar answers at http://"+free.Addr().String())

	sidecar := in(append(config.Config.Entrypoint, config.Config.Cmd...))
	require.NoError(t, sidecar.Start())
	defer func() {
		require.NoError(t, sidecar.Process.Signal(syscall.SIGTERM))
		require.NoError(t, sidecar.Wait())
	}()
	require.Eventually(t, func() bool {
		health := in(check.Test[1:])
		said, err := health.Output()
		return err != nil && health.ProcessState.ExitCode() == 1 && string(said) == "not ready: the broker is not connected\n"
	}, 20*time.Second, 100*time.Millisecond)
}

// filesystem unpacks the layers of an image.
func filesystem(t *testing.T, image v1.Image) (root string) {
	t.Helper()
	root = t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	files := mutate.Extract(image)
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		require.NoError(t, err)
		path := filepath.Join(root, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
		} else {
			data, err := io.ReadAll(archive)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, data, os.FileMode(header.Mode)))
		}
		require.NoError(t, os.Lchown(path, header.Uid, header.Gid))
	}
}
