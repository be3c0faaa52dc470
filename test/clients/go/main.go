// Sends every kind of telemetry with the SDK of Go, which reads the variables of OpenTelemetry alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

var attributes = []attribute.KeyValue{
	attribute.String("text", "Grüße aus Zürich 🫕\n\"quoted\"\\"),
	attribute.String("empty", ""),
	attribute.Bool("bool", true),
	attribute.Int64("int", -1<<63),
	attribute.Float64("double", 0.1),
	attribute.Float64("whole", 3),
	attribute.StringSlice("texts", []string{"a", "ö"}),
	attribute.Int64Slice("ints", []int64{1, -2}),
	attribute.Float64Slice("doubles", []float64{1.5, 1e20}),
	attribute.BoolSlice("bools", []bool{true, false}),
	attribute.ByteSlice("bytes", []byte{0, 255}),
	attribute.Slice("list", attribute.Int64Value(1), attribute.StringValue("a")),
	attribute.Map("nested", attribute.Map("ä", attribute.Float64("b", 2))),
	attribute.String("session.id", "session-1"),
	attribute.String("http.route", "/cart/:id"),
	attribute.Int("http.response.status_code", 500),
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tracers, loggers, meters := providers(ctx)
	inTrace := traces(ctx, tracers.Tracer("shop", trace.WithInstrumentationVersion("0.9")))
	logs(inTrace, loggers.Logger("shop", log.WithInstrumentationVersion("0.9")))
	metrics(inTrace, meters.Meter("shop", metric.WithInstrumentationVersion("0.9")))
	must(errors.Join(tracers.Shutdown(ctx), loggers.Shutdown(ctx), meters.Shutdown(ctx)))
}

// providers returns the providers of the three signals with the exporters of the protocol.
func providers(ctx context.Context) (*sdktrace.TracerProvider, *sdklog.LoggerProvider, *sdkmetric.MeterProvider) {
	var spans sdktrace.SpanExporter
	var records sdklog.Exporter
	var points sdkmetric.Exporter
	var faults [3]error
	if os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		spans, faults[0] = otlptracegrpc.New(ctx)
		records, faults[1] = otlploggrpc.New(ctx)
		points, faults[2] = otlpmetricgrpc.New(ctx)
	} else {
		spans, faults[0] = otlptracehttp.New(ctx)
		records, faults[1] = otlploghttp.New(ctx)
		points, faults[2] = otlpmetrichttp.New(ctx)
	}
	must(errors.Join(faults[:]...))
	exponential := sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans)),
		sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(records))),
		sdkmetric.NewMeterProvider(
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points)),
			sdkmetric.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: "size"}, exponential)))
}

func traces(ctx context.Context, tracer trace.Tracer) context.Context {
	state, err := trace.ParseTraceState("vendor=a")
	must(err)
	other := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 15: 2}, SpanID: trace.SpanID{255, 7: 3}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	var last context.Context
	for kind := trace.SpanKindInternal; kind <= trace.SpanKindConsumer; kind++ {
		inParent, parent := tracer.Start(trace.ContextWithRemoteSpanContext(ctx, other), fmt.Sprint("parent ", kind),
			trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
		_, child := tracer.Start(inParent, "Käse", trace.WithLinks(
			trace.Link{SpanContext: other, Attributes: attributes}, trace.Link{SpanContext: parent.SpanContext()}))
		child.AddEvent("step", trace.WithAttributes(attributes...))
		child.AddEvent("at", trace.WithTimestamp(time.Unix(1_795_000_000, 123_456_789)))
		child.RecordError(errors.New("amount 17 is out of range"))
		child.SetStatus(codes.Error, "Größe")
		child.End()
		parent.SetStatus(codes.Ok, "")
		parent.End()
		last = inParent
	}
	return last
}

func logs(ctx context.Context, logger log.Logger) {
	text, yes := attribute.StringValue, attribute.BoolValue(true)
	bodies := []attribute.Value{
		text("Zürich 🫕"), text(""), attribute.Int64Value(-1 << 63), attribute.Float64Value(0.1), yes,
		attribute.SliceValue(text("a"), attribute.SliceValue(yes)),
		attribute.MapValue(attribute.Map("a", attribute.Slice("b", attribute.Int64Value(1), text("ü")))),
		attribute.ByteSliceValue([]byte{0, 1, 254, 255}),
		{},
	}
	for i, body := range bodies {
		var record log.Record
		record.SetTimestamp(time.Unix(1_795_000_000, int64(i)+1))
		record.SetSeverity(log.SeverityInfo)
		record.SetSeverityText("INFO")
		record.SetEventName("order.placed")
		record.SetBody(body)
		record.AddAttributes(attributes...)
		logger.Emit(ctx, record)
	}
}

func metrics(ctx context.Context, meter metric.Meter) {
	with := metric.WithAttributes(attributes...)
	orders, e1 := meter.Int64Counter("orders", metric.WithUnit("{order}"), metric.WithDescription("Placed orders"))
	queue, e2 := meter.Int64UpDownCounter("queue")
	temperature, e3 := meter.Float64Gauge("temperature", metric.WithUnit("Cel"))
	duration, e4 := meter.Float64Histogram("duration", metric.WithUnit("ms"))
	size, e5 := meter.Int64Histogram("size", metric.WithUnit("By"))
	must(errors.Join(e1, e2, e3, e4, e5))
	orders.Add(ctx, 1<<62, with)
	queue.Add(ctx, -5, with)
	temperature.Record(ctx, -40.5, metric.WithAttributes(attribute.String("room", "Büro")))
	for _, value := range []float64{0, 3, 70, 12_345.6} {
		duration.Record(ctx, value, with)
	}
	for _, value := range []int64{0, 1, 1_000, 1_000_000} {
		size.Record(ctx, value, with)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
