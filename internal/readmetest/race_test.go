//go:build race

package readmetest

// raceFlag makes the programs that these tests build share the build cache with the tests.
const raceFlag = "-race"
