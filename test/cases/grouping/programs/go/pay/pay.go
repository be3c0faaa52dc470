// Package pay has bugs that return errors, which OpenTelemetry records with the stack of the call.
package pay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/trace"
)

type CardError struct{ Card string }

func (e *CardError) Error() string { return "card " + e.Card + " was declined" }

func record(ctx context.Context, err error) {
	trace.SpanFromContext(ctx).RecordError(err, trace.WithStackTrace(true))
}

//2 // Charge was edited.
//2

//go:noinline
func Charge(ctx context.Context, user string) { record(ctx, errors.New("no card of user "+user)) }

//go:noinline
func Refund(ctx context.Context, user string) { record(ctx, errors.New("no card of user "+user)) }

//go:noinline
func Decline(ctx context.Context, card string) { record(ctx, &CardError{card}) }

//go:noinline
func Authorize(ctx context.Context, card string) {
	record(ctx, fmt.Errorf("authorize: %w", &CardError{card}))
}

//go:noinline
func Capture(ctx context.Context, card string) {
	record(ctx, fmt.Errorf("capture: %w", &CardError{card}))
}

//go:noinline
func Parse(ctx context.Context, amount string) {
	_, err := strconv.Atoi(amount)
	record(ctx, err)
}

//go:noinline
func FetchRates(ctx context.Context, url string) {
	_, err := http.Get(url)
	record(ctx, err)
}

//go:noinline
func FetchStock(ctx context.Context, url string) {
	_, err := http.Get(url)
	record(ctx, err)
}

//go:noinline
func SaveOrder(ctx context.Context, driver string) {
	_, err := sql.Open(driver, "")
	record(ctx, err)
}

//go:noinline
func LoadOrder(ctx context.Context, driver string) {
	_, err := sql.Open(driver, "")
	record(ctx, err)
}

//go:noinline
func Retry(ctx context.Context, attempts int) {
	var err error
	for range attempts {
		_, err = strconv.Atoi("x" + strconv.Itoa(attempts))
	}
	record(ctx, err)
}

//go:noinline
func Plain(ctx context.Context, err error) { trace.SpanFromContext(ctx).RecordError(err) }
