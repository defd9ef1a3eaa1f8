// Package scheduler is what the leader does.
package scheduler
