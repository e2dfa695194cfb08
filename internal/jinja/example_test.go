package jinja_test

import (
	"errors"
	"fmt"

	"github.com/noetl/noetl-go/internal/jinja"
)

func ExampleTemplate_Value() {
	scope := jinja.Vars{"fetch": map[string]any{"rows": []any{1, 2, 3}}}
	for _, src := range []string{"{{ fetch.rows | length }}", "{{ fetch.rows | length }} rows"} {
		tmpl, err := jinja.Compile(src)
		if err != nil {
			fmt.Println(err)
			return
		}
		v, err := tmpl.Value(scope)
		fmt.Printf("%T %v %v\n", v, v, err)
	}
	// Output:
	// int64 3 <nil>
	// string 3 rows <nil>
}

func ExampleError_Excerpt() {
	_, err := jinja.CompileCondition("status == 'ok' and rows | lenght > 0")
	var e *jinja.Error
	if errors.As(err, &e) {
		fmt.Printf("%v\n%s\n%s\n", e, e.Excerpt(), e.Remedy)
	}
	// Output:
	// there is no filter 'lenght' (1:27)
	// status == 'ok' and rows | lenght > 0
	//                           ^
	// did you mean 'length'?
}
