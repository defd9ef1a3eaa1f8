package httpapi

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

const (
	formatCSV    = "csv"
	formatNDJSON = "ndjson"
)

// exportTimeout limits how long the client may take to read a batch.
const exportTimeout = time.Minute

// readFormat reads format: csv or ndjson, or empty for an answer in pages, which have parameters of
// their own.
func readFormat(in *problem.Request, ofPages ...string) string {
	format := in.Text("format")
	if format == "" {
		return ""
	}
	if exportTypes[format] == "" {
		in.BadRequest("parameter format is %q: it must be csv or ndjson", problem.Shorten(format))
	}
	in.Without("format, which gives the whole list", ofPages...)
	return format
}

var exportTypes = map[string]string{formatCSV: "text/csv; charset=utf-8", formatNDJSON: "application/x-ndjson"}

// export streams a list as a file, in batches: a slow client holds no snapshot. batch writes the
// next one, and reports whether there are more.
func export(
	in *problem.Request, name, format string, columns []string, batch func(w io.Writer) (more bool, err error),
) error {
	w := in.Response()
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+"."+format+`"`)
	w.Header().Set("Content-Type", exportTypes[format])
	if in.Request().Method == http.MethodHead {
		return nil
	}
	if format == formatCSV {
		_, _ = io.WriteString(w, strings.Join(columns, ",")+"\r\n")
	}
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportTimeout)) // not every writer has one
		if more, err := batch(w); err != nil || !more {
			return err
		}
	}
}

// cell keeps spreadsheets from evaluating a text as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
