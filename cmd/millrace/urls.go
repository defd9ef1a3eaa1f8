package main

import (
	"reflect"

	"github.com/alecthomas/kong"
)

// urlsType is the type, in kong's tags, of a flag that can be given several times. The URLs stand in
// one string, with commas between them, as hosts.Parse reads them.
const urlsType = "urls"

func decodeURLs(ctx *kong.DecodeContext, target reflect.Value) error {
	var one string
	if err := ctx.Scan.PopValueInto("string", &one); err != nil {
		return err
	}
	if before := target.String(); before != "" {
		one = before + "," + one
	}
	target.SetString(one)
	return nil
}
