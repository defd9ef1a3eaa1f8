package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const stateDir = "/var/lib/millrace"

// user is the user of the process, who has no name in the image.
const user = 65532

// file is a file of a layer. A name that ends with a slash is a directory.
type file struct {
	name  string
	mode  int64
	owner int
	data  []byte
}

// base is what all versions of the binary share.
func base() ([]file, error) {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		// The few with a constraint are distrusted in part. A file cannot say so.
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return []file{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates.Bytes()},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755}, {name: stateDir[1:] + "/", mode: 0o755, owner: user},
	}, nil
}

func program(path string) ([]file, error) {
	data, err := os.ReadFile(path)
	return []file{{name: "millrace", mode: 0o755, data: data}}, err
}

func layerOf(modified time.Time, files []file) (v1.Layer, error) {
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)), ModTime: modified, Typeflag: tar.TypeReg}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
}
