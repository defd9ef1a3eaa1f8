module github.com/millrace-jobs/millrace

go 1.26
