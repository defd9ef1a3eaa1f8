//go:build !race

package readmetest

// raceFlag is explained in race_test.go.
const raceFlag = "-race=false"
