"""Sends every kind of telemetry with the SDK of Python, which reads the variables of OpenTelemetry alone."""

import os

from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

ATTRIBUTES = {
    "text": 'Grüße aus Zürich 🫕\n"quoted"\\',
    "empty": "",
    "bool": True,
    "int": -(2**63),
    "double": 0.1,
    "whole": 3.0,
    "texts": ["a", "ö"],
    "ints": [1, -2],
    "doubles": [1.5, -0.0],
    "bools": [True, False],
    "session.id": "session-1",
    "http.route": "/cart/:id",
    "http.response.status_code": 500,
}

tracers = TracerProvider()
tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = tracers.get_tracer("shop", "0.9", "https://opentelemetry.io/schemas/1.30.0", {"scoped": 1})
other = SpanContext(2**127 + 1, 2**63 + 1, True, TraceFlags(1), TraceState([("vendor", "a")]))
for kind in SpanKind:
    with tracer.start_as_current_span(f"parent {kind.name}", kind=kind, attributes=ATTRIBUTES) as parent:
        links = [Link(other, ATTRIBUTES), Link(parent.get_span_context())]
        with tracer.start_as_current_span("Käse", links=links) as child:
            child.add_event("step", ATTRIBUTES)
            child.add_event("at", timestamp=1_795_000_000_123_456_789)
            child.record_exception(ValueError("amount 17 is out of range"))
            child.set_status(Status(StatusCode.ERROR, "Größe"))
        parent.set_status(Status(StatusCode.OK))

loggers = LoggerProvider()
loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
logger = loggers.get_logger("shop", "0.9")
BODIES = ["order 17", "Zürich 🫕", "", 42, 0.1, True, ["a", 1, [False]], {"a": {"b": [1, "ü"]}}, b"\x00\x01\xfe\xff"]
for i, body in enumerate(BODIES):
    with tracer.start_as_current_span("logged") as span:
        logger.emit(
            LogRecord(
                timestamp=1_795_000_000_000_000_001 + i,
                context=trace.set_span_in_context(span),
                severity_number=SeverityNumber.INFO,
                severity_text="INFO",
                body=body,
                attributes={**ATTRIBUTES, "nested": {"a": [1, "b"]}, "bytes": b"\x00\xff"},
                event_name="order.placed",
            )
        )

reader = PeriodicExportingMetricReader(OTLPMetricExporter())
size_view = View(instrument_type=Histogram, instrument_name="size", aggregation=ExponentialBucketHistogramAggregation())
meters = MeterProvider([reader], views=[size_view])
meter = meters.get_meter("shop", "0.9")
meter.create_counter("orders", "{order}", "Placed orders").add(2**53 - 1, ATTRIBUTES)
meter.create_counter("revenue", "CHF").add(12.75)
meter.create_up_down_counter("queue").add(-5, ATTRIBUTES)
meter.create_gauge("temperature", "Cel").set(-40.5, {"room": "Büro"})
meter.create_observable_gauge("memory", [lambda _: [metrics.Observation(123456789, ATTRIBUTES)]])
duration, size = meter.create_histogram("duration", "ms"), meter.create_histogram("size", "By")
with tracer.start_as_current_span("measured"):
    for value in [0, 3, 70, 12_345.6]:
        duration.record(value, ATTRIBUTES)
    for value in [0, 1, 1_000, 1_000_000]:
        size.record(value, ATTRIBUTES)

for provider in [tracers, loggers, meters]:
    provider.force_flush()
    provider.shutdown()
