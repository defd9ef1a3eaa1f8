// Command zip packs a folder into a zip file: zip PARENT NAME FILE. The same contents give the same
// bytes: names are sorted, and all times are SOURCE_DATE_EPOCH. Files whose names end with .exe can
// be executed on systems that know such a permission.
package main

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/scripts/release/epoch"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: zip PARENT NAME FILE")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "zip:", err)
		os.Exit(1)
	}
}

func pack(parent, name, file string) (err error) {
	modified, err := epoch.Time()
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	archive := zip.NewWriter(out)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	tree := os.DirFS(parent)
	err = fs.WalkDir(tree, name, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return add(archive, tree, at, modified)
	})
	return errors.Join(err, archive.Close())
}

func add(archive *zip.Writer, tree fs.FS, at string, modified time.Time) error {
	header := &zip.FileHeader{Name: at, Method: zip.Deflate, Modified: modified}
	header.SetMode(0o644)
	if strings.EqualFold(path.Ext(at), ".exe") {
		header.SetMode(0o755)
	}
	to, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	from, err := tree.Open(at)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}
