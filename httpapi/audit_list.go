package httpapi

import (
	"context"
	"net/http"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// list lists what was done, the newest first: a page of it, or all as a file.
func (a *auditAPI) list(in *problem.Request) error {
	q := readAuditQuery(in, a.now())
	if in.Err() != nil {
		return in.Err()
	}
	if q.format != "" {
		return a.export(in, q)
	}
	var page any
	var err error
	if q.sifts() {
		page, err = a.answers.share(in, func(context.Context) (any, error) { return a.find(q) })
	} else {
		page, err = a.find(q)
	}
	if err != nil {
		return err
	}
	return in.JSON(http.StatusOK, page)
}
