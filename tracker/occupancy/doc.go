// Package occupancy counts what limits let through: the slots that jobs hold, and the jobs that
// wait.
package occupancy
