package main

// nearest is the candidate that takes the fewest edits to get to from what was written.
func nearest(written string, candidates []string) string {
	best, fewest := "", -1
	for _, c := range candidates {
		if n := distance(written, c); fewest < 0 || n < fewest {
			best, fewest = c, n
		}
	}
	return best
}

// distance is how many characters must be put in, taken out or replaced to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
