// Command image writes an OCI image index for several architectures into a new folder, in the form
// that the OCI image specification calls a layout:
//
//	image -version VERSION -revision COMMIT FOLDER ARCH=BINARY...
//
// ARCH is amd64, arm64 or armv7. The same binaries give the same bytes: times are
// SOURCE_DATE_EPOCH, and the certificates of the authorities come from a module that go.sum pins.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/millrace-jobs/millrace/scripts/release/epoch"
)

// about is what labels and annotations say.
type about struct {
	version, revision string
	created           time.Time
}

// platforms are those for which there are archives for Linux.
var platforms = map[string]v1.Platform{
	"amd64": {OS: "linux", Architecture: "amd64"},
	"arm64": {OS: "linux", Architecture: "arm64"},
	"armv7": {OS: "linux", Architecture: "arm", Variant: "v7"},
}

func main() {
	version := flag.String("version", "", "version of the binaries")
	revision := flag.String("revision", "", "commit of the binaries")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: image -version VERSION -revision COMMIT FOLDER ARCH=BINARY...")
	}
	flag.Parse()
	if flag.NArg() < 2 || *version == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*version, *revision, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(version, revision, folder string, binaries []string) error {
	created, err := epoch.Time()
	if err != nil {
		return err
	}
	if _, err := os.Stat(folder); err == nil {
		return errors.New(folder + " exists already")
	}
	of := about{version: version, revision: revision, created: created}
	index, err := indexOf(of, slices.Sorted(slices.Values(binaries)))
	if err != nil {
		return err
	}
	_, err = layout.Write(folder, index)
	return err
}

func indexOf(of about, binaries []string) (v1.ImageIndex, error) {
	list := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, binary := range binaries {
		arch, file, _ := strings.Cut(binary, "=")
		platform, known := platforms[arch]
		if !known || file == "" {
			return nil, fmt.Errorf("%q: write amd64=FILE, arm64=FILE or armv7=FILE", binary)
		}
		image, err := imageOf(of, platform, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arch, err)
		}
		list = mutate.AppendManifests(list, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	list, _ = mutate.Annotations(list, of.annotations()).(v1.ImageIndex)
	// The layout names one index, so that each tool finds all platforms under one name.
	name := map[string]string{"org.opencontainers.image.ref.name": of.version}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: list, Descriptor: v1.Descriptor{Annotations: name}}), nil
}

func (of about) annotations() map[string]string {
	const source = "https://github.com/millrace-jobs/millrace"
	return map[string]string{
		"org.opencontainers.image.title":       "millrace",
		"org.opencontainers.image.description": "Background jobs on RabbitMQ and LavinMQ",
		"org.opencontainers.image.version":     of.version,
		"org.opencontainers.image.revision":    of.revision,
		"org.opencontainers.image.created":     of.created.Format(time.RFC3339),
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.url":         source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

func imageOf(of about, platform v1.Platform, binary string) (v1.Image, error) {
	var addenda []mutate.Addendum
	for _, content := range []struct {
		by    string
		files func() ([]file, error)
	}{
		{"certificates of the authorities, and the state directory", base},
		{"millrace " + of.version, func() ([]file, error) { return program(binary) }},
	} {
		files, err := content.files()
		if err != nil {
			return nil, err
		}
		layer, err := layerOf(of.created, files)
		if err != nil {
			return nil, err
		}
		addenda = append(addenda, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: of.created}, CreatedBy: content.by}})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Created: v1.Time{Time: of.created}, RootFS: v1.RootFS{Type: "layers"}, Config: config(of),
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, addenda...)
}

// config says the same as deploy/Dockerfile.
func config(of about) v1.Config {
	return v1.Config{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"15680/tcp": {}},
		Volumes:      map[string]struct{}{stateDir: {}},
		Entrypoint:   []string{"/millrace"},
		Cmd:          []string{"serve", "--state-dir", stateDir},
		Labels:       of.annotations(),
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/millrace", "health", "ready"}, Interval: 10 * time.Second, Timeout: 10 * time.Second,
			StartPeriod: 5 * time.Minute, Retries: 3,
		},
	}
}
