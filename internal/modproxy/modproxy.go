package modproxy

import (
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// The Go modules of the repository that are packed for tests.
const (
	Sidecar = "github.com/millrace-jobs/millrace"
	Client  = Sidecar + "/clients/go"
)

// Pack adds the module in a folder to the module proxy in another folder, with a version such as
// v1.2.3. It returns the path of the module's zip. The go command reads that proxy if GOPROXY names
// its folder with file://.
func Pack(proxy, path, version, folder string) (archive string, err error) {
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	archive = filepath.Join(at, version+".zip")
	out, err := os.Create(archive)
	if err != nil {
		return "", err
	}
	if err := zip.CreateFromDir(out, module.Version{Path: path, Version: version}, folder); err != nil {
		out.Close()
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{"list": version + "\n", version + ".mod": string(mod), version + ".info": `{"Version":"` + version + `"}`} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return archive, nil
}
