package millrace

import (
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

func retryRecord(j *RawJob, err error, failed, due time.Time) []byte {
	return failure(j, err).Retry(j.Queue, j.Raw, failed, due)
}

func deadRecord(j *RawJob, err error, reason string, died time.Time) []byte {
	return failure(j, err).Dead(j.Queue, j.Raw, reason, died)
}

func failure(j *RawJob, err error) wire.Failure {
	return wire.Failure{JID: j.JID, RetryCount: j.RetryCount, ErrorClass: ErrorClass(err), ErrorMessage: err.Error(),
		Backtrace: strings.Join(firstLines(backtrace(err), j.backtrace), "\n")}
}

func firstLines(lines []string, n int) []string { return lines[:min(len(lines), n)] }

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
