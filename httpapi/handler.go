package httpapi

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// handler handles a request that it reads strictly.
type handler = func(in *problem.Request) error

// writes returns the handler of a route that writes its answer.
func writes(handle handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		return handle(problem.Read(c))
	}
}

// ok returns the handler of a route that answers 200 with what handle returns. Err is checked
// once more, so that a handle that only looks need not.
func ok(handle func(in *problem.Request) (any, error)) echo.HandlerFunc {
	return writes(func(in *problem.Request) error {
		answer, err := handle(in)
		if err := cmp.Or(in.Err(), err); err != nil {
			return err
		}
		return in.JSON(http.StatusOK, answer)
	})
}

// done returns the handler of a route that answers 204.
func done(handle handler) echo.HandlerFunc {
	return writes(func(in *problem.Request) error {
		err := handle(in)
		if err := cmp.Or(in.Err(), err); err != nil {
			return err
		}
		return in.NoContent(http.StatusNoContent)
	})
}
