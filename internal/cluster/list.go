package cluster

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects ListAll asks for in one request.
const PageSize = 500

// ListAll reads a whole list into list, in pages. A continue token that
// expired (410) makes it start again from the first page, once; the second
// time it reads the list in one request, which needs no token. On an error
// list is as it was. A Limit or Continue among the options has no effect.
func ListAll(ctx context.Context, c client.Reader, list client.ObjectList, opts ...client.ListOption) error {
	expired := 0
	for {
		size := int64(PageSize)
		if expired > 1 {
			size = 0
		}
		again, err := listPages(ctx, c, list, size, opts)
		if err == nil || !again || size == 0 {
			return err
		}
		expired++
	}
}

// listPages reads all pages into list; again says that a token expired between
// two pages.
func listPages(ctx context.Context, c client.Reader, list client.ObjectList, size int64, opts []client.ListOption) (again bool, err error) {
	var base client.ListOptions
	base.ApplyOptions(opts)
	var items reflect.Value
	token := ""
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		page, err := emptyCopy(list)
		if err != nil {
			return false, err
		}
		o := base
		o.Limit, o.Continue = size, token
		if err := c.List(ctx, page, &o); err != nil {
			return token != "" && Classify(err) == CodeExpired, err
		}
		got, err := itemsOf(page)
		if err != nil {
			return false, err
		}
		if items.IsValid() {
			items = reflect.AppendSlice(items, got)
		} else {
			items = got
		}
		next := page.GetContinue()
		if next != "" && next == token {
			return false, fmt.Errorf("listing %T: the server gave the same continue token twice", list)
		}
		token = next
		if token != "" {
			continue
		}
		page.SetRemainingItemCount(nil)
		if got.Len() != items.Len() {
			got.Set(items)
		}
		reflect.ValueOf(list).Elem().Set(reflect.ValueOf(page).Elem())
		return false, nil
	}
}

// emptyCopy returns a list of the same type and kind without items, so that
// nothing of an earlier page or of the caller's list is left in a page.
func emptyCopy(list client.ObjectList) (client.ObjectList, error) {
	page, ok := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", list)
	}
	page.GetObjectKind().SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	return page, nil
}

// itemsOf returns the settable slice of a list's items.
func itemsOf(list client.ObjectList) (reflect.Value, error) {
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, fmt.Errorf("%T is not a list of objects: %w", list, err)
	}
	return reflect.ValueOf(ptr).Elem(), nil
}
