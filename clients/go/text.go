package millrace

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// What encoding/json writes in place of bytes that are not UTF-8: an escape or, with
// GOEXPERIMENT=jsonv2, the character itself.
var (
	replacedEscape    = []byte(`\ufffd`)
	replacedCharacter = []byte("\ufffd")
)

// checkText returns an error if the JSON of a value lacks text that is not UTF-8.
func checkText(body []byte, v any) error {
	if !utf8.Valid(body) { // from a json.Marshaler or a json.RawMessage
		return errors.New("its JSON is not UTF-8")
	}
	if !bytes.Contains(body, replacedEscape) && !bytes.Contains(body, replacedCharacter) {
		return nil
	}
	return findBadText(reflect.ValueOf(v))
}

// findBadText returns an error with the first text in a value that is not UTF-8. It skips values
// that marshal themselves to JSON.
func findBadText(v reflect.Value) error {
	if !v.IsValid() {
		return nil
	}
	if v.CanInterface() {
		switch own := v.Interface().(type) {
		case json.Marshaler:
			return nil
		case encoding.TextMarshaler:
			if v.Kind() == reflect.Pointer && v.IsNil() {
				return nil
			}
			text, err := own.MarshalText()
			return errors.Join(err, badText(string(text)))
		}
	}
	switch v.Kind() {
	case reflect.String:
		return badText(v.String())
	case reflect.Pointer, reflect.Interface:
		return findBadText(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := findBadText(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if err := errors.Join(findBadText(entry.Key()), findBadText(entry.Value())); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return findBadField(v)
	}
	return nil
}

// findBadField checks the fields that are in the JSON of a struct.
func findBadField(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Tag.Get("json") == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if err := findBadText(v.Field(i)); err != nil {
			if name == "" {
				name = field.Name
			}
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}

func badText(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return fmt.Errorf("the text %.40q is not UTF-8", text)
}
