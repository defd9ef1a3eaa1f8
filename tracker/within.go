package tracker

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// within returns the item of an array or the member of an object that a step of a path names. The
// result does not exist if there is none. Of members with the same name it returns the last, which
// is the one that most parsers read.
func within(v gjson.Result, step string) (found gjson.Result) {
	if v.IsObject() {
		v.ForEach(func(key, member gjson.Result) bool {
			if wire.TextOf(key) == step {
				found = member
			}
			return true
		})
		return found
	}
	left, err := strconv.Atoi(step)
	if !v.IsArray() || err != nil || strconv.Itoa(left) != step {
		return found
	}
	v.ForEach(func(_, item gjson.Result) bool {
		if left == 0 {
			found = item
		}
		left--
		return left >= 0
	})
	return found
}
