package tools

import "reflect"

// masked passes every text of an answer through a mask, in place: fields, lists,
// values and keys of maps. What is no text stays.
func masked(out any, mask func(string) string) { maskValue(reflect.ValueOf(out), mask) }

func maskValue(v reflect.Value, mask func(string) string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			if v.Kind() == reflect.Interface && v.Elem().Kind() == reflect.String && v.CanSet() {
				v.Set(reflect.ValueOf(mask(v.Elem().String())))
				return
			}
			maskValue(v.Elem(), mask)
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(mask(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() || v.Type().Field(i).Anonymous {
				maskValue(v.Field(i), mask)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			maskValue(v.Index(i), mask)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(k))
			maskValue(value, mask)
			key := reflect.New(v.Type().Key()).Elem()
			key.Set(k)
			maskValue(key, mask)
			v.SetMapIndex(k, reflect.Value{})
			v.SetMapIndex(key, value)
		}
	}
}
