//go:build race

package readmetest

// raceFlag has what is built here share the build cache with the tests.
const raceFlag = "-race"
