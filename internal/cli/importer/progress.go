package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Progress says how far an import has come. The resume file has it.
type Progress struct {
	Name     string `json:"name"`
	Lines    int64  `json:"lines"` // lines of the input that are settled
	Bytes    int64  `json:"bytes"` // the same in bytes
	SHA256   string `json:"sha256"`
	Entered  int64  `json:"entered"`
	Refused  int64  `json:"refused"`
	Rejected int64  `json:"rejected_bytes"` // size of the file of refused lines
}

// Load reads a resume file. Without one, the import begins at the first line.
func Load(path, name string) (Progress, error) {
	begin := Progress{Name: name}
	if path == "" {
		return begin, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return begin, nil
	}
	if err != nil {
		return begin, err
	}
	p := Progress{}
	if err := json.Unmarshal(text, &p); err != nil || p.Name == "" || p.Lines < 0 || p.Bytes < 0 || p.Rejected < 0 {
		return begin, fmt.Errorf("%s is no resume file of an import: name another file", path)
	}
	if p.Name != name {
		return begin, fmt.Errorf("%s is the resume file of the import %q: use --name %[2]s, or another file", path, p.Name)
	}
	return p, nil
}

// save writes the resume file. A process that is killed meanwhile leaves the old one.
func (p *Progress) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = next.Write(append(text, '\n'))
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name())
		return fmt.Errorf("write the resume file: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a rename survive a power failure, where the system can.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	_ = folder.Sync() // Windows cannot
	return nil
}
