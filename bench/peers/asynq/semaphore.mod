module github.com/millrace-jobs/millrace/bench/peers/asynq

go 1.26.0

require github.com/hibiken/asynq v0.23.0

require (
	github.com/hibiken/asynq/x v0.0.0-20211219150637-8dfabfccb3be
	golang.org/x/sys v0.0.0-20210603081109-ebe580a85c40
)

require (
	github.com/cespare/xxhash/v2 v2.1.2 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/go-redis/redis/v8 v8.11.4 // indirect
	github.com/golang/protobuf v1.5.2 // indirect
	github.com/google/uuid v1.3.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.3.1 // indirect
	golang.org/x/time v0.0.0-20190308202827-9d24e82272b4 // indirect
	google.golang.org/protobuf v1.26.0 // indirect
)
