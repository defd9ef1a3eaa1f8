//go:build !race

package readmetest

// race_test.go explains raceFlag.
const raceFlag = "-race=false"
