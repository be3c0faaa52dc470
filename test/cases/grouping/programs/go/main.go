// Runs each bug, as OpenTelemetry's SDK records it, and writes a line of JSON for each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"shop.example/shop/cart"
	"shop.example/shop/pay"
)

var exporter = tracetest.NewInMemoryExporter()
var tracer = sdk.NewTracerProvider(sdk.WithSyncer(exporter)).Tracer("shop")

func emit(scenario string) {
	for _, span := range exporter.GetSpans() {
		for _, event := range span.Events {
			line := map[string]string{"scenario": scenario}
			for _, a := range event.Attributes {
				line[map[string]string{"exception.type": "type", "exception.message": "message", "exception.stacktrace": "stacktrace"}[string(a.Key)]] = a.Value.AsString()
			}
			text, _ := json.Marshal(line)
			fmt.Println(string(text))
		}
	}
	exporter.Reset()
}

func panics(scenario string, f func(ctx context.Context)) {
	func() {
		ctx, span := tracer.Start(context.Background(), "work")
		defer func() { _ = recover() }()
		defer span.End(trace.WithStackTrace(true))
		f(ctx)
	}()
	emit(scenario)
}

func inGoroutine(scenario string, f func(ctx context.Context)) {
	done := make(chan struct{})
	go func() { defer close(done); panics(scenario, f) }()
	<-done
}

func handled(scenario, path string, handler http.HandlerFunc) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		panics(scenario, func(context.Context) { handler(w, r) })
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	_, _ = http.Get(server.URL + path)
}

func showCart(w http.ResponseWriter, r *http.Request)  { newCart().Total(len(r.URL.Path)) }
func showOrder(w http.ResponseWriter, r *http.Request) { newCart().Total(len(r.URL.Path)) }

func newCart() *cart.Cart { return &cart.Cart{Items: []cart.Item{{Price: 7, Count: 1}}} }

func crash(name string) {
	switch name {
	case "total":
		newCart().Total(3)
	case "total-other":
		newCart().Total(11)
	case "goroutine":
		done := make(chan int)
		for range 9 {
			go func() { <-done }()
		}
		newCart().Total(3)
	case "own":
		newCart().Own("a")
	case "parent":
		newCart().ParentPrice()
	case "walk", "walk-other":
		cart.Walk(newCart(), len(name)*3)
	case "error":
		panic(fmt.Errorf("no user %d", 17))
	case "again", "again-other":
		defer func() { panic(fmt.Sprint("again: ", recover())) }()
		if name == "again" {
			newCart().Total(3)
		} else {
			newCart().Average(0)
		}
	}
}

func main() {
	if len(os.Args) > 1 {
		crash(os.Args[1])
	}
	panics("total", func(context.Context) { newCart().Total(3) })
	panics("total-7", func(context.Context) { newCart().Total(7) })
	inGoroutine("total-goroutine", func(context.Context) { newCart().Total(3) })
	inGoroutine("total-goroutine-2", func(context.Context) { newCart().Total(3) })
	panics("order-total", func(context.Context) { cart.Order{}.Total(3) })
	panics("discount", func(context.Context) { newCart().Discount(3) })
	panics("own", func(context.Context) { newCart().Own("a") })
	panics("parent", func(context.Context) { newCart().ParentPrice() })
	panics("average", func(context.Context) { newCart().Average(0) })
	for _, depth := range []int{3, 6, 40} {
		panics(fmt.Sprint("walk-", depth), func(context.Context) { cart.Walk(newCart(), depth) })
	}
	panics("last-int", func(context.Context) { cart.Last([]int{1}, 4) })
	panics("last-item", func(context.Context) { cart.Last([]cart.Item{{}}, 9) })
	panics("report-1", func(context.Context) { newCart().Report(1, nil) })
	panics("report-2", func(context.Context) { newCart().Report(2, nil) })
	panics("close", func(context.Context) { newCart().Close(0) })
	panics("close-body", func(context.Context) { newCart().Convert(4) })
	panics("convert", func(context.Context) { newCart().Convert(4) })
	panics("convert-other", func(context.Context) { newCart().Convert(4.5) })
	panics("show", func(context.Context) { newCart().Show(2) })
	handled("handled-cart", "/a", showCart)
	handled("handled-cart-2", "/users/4711", showCart)
	handled("handled-order", "/a", showOrder)
	recorded := func(scenario string, f func(context.Context, string), value string) {
		ctx, span := tracer.Start(context.Background(), "work")
		f(ctx, value)
		span.End()
		emit(scenario)
	}
	recorded("charge", pay.Charge, "17")
	recorded("charge-other", pay.Charge, "ada")
	recorded("refund", pay.Refund, "17")
	recorded("decline", pay.Decline, "4242")
	recorded("decline-other", pay.Decline, "1111")
	recorded("authorize", pay.Authorize, "4242")
	recorded("authorize-other", pay.Authorize, "1111")
	recorded("capture", pay.Capture, "4242")
	recorded("parse", pay.Parse, "four")
	recorded("parse-other", pay.Parse, "12,50")
	recorded("rates", pay.FetchRates, "http://127.0.0.1:1/rates")
	recorded("rates-other", pay.FetchRates, "http://127.0.0.1:2/rates?day=2")
	recorded("stock", pay.FetchStock, "http://127.0.0.1:1/rates")
	recorded("save", pay.SaveOrder, "oracle")
	recorded("save-other", pay.SaveOrder, "mssql")
	recorded("load", pay.LoadOrder, "oracle")
	retried := func(n int) func(context.Context, string) { return func(c context.Context, _ string) { pay.Retry(c, n) } }
	recorded("retry-1", retried(1), "")
	recorded("retry-3", retried(3), "")
	plain := func(text string) func(context.Context, string) {
		return func(c context.Context, _ string) { pay.Plain(c, errors.New(text)) }
	}
	recorded("plain", plain("order 4711 of ada@shop.example not found"), "")
	recorded("plain-other", plain("order 99 of bob@shop.example not found"), "")
	recorded("plain-second", plain("payment 99 of bob@shop.example was refused"), "")
}
