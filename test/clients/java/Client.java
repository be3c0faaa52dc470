import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.Value;
import io.opentelemetry.api.logs.Severity;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.metrics.Aggregation;
import io.opentelemetry.sdk.metrics.InstrumentSelector;
import io.opentelemetry.sdk.metrics.View;
import java.util.List;
import java.util.Map;

/** Sends every kind of telemetry with the SDK of Java, which reads the variables of OpenTelemetry alone. */
public class Client {
  private static final Attributes ATTRIBUTES =
      Attributes.builder()
          .put("text", "Grüße aus Zürich 🫕\n\"quoted\"\\")
          .put("empty", "")
          .put("bool", true)
          .put("int", Long.MIN_VALUE)
          .put("double", 0.1)
          .put("whole", 3.0)
          .put("texts", "a", "ö")
          .put("ints", 1, -2)
          .put("doubles", 1.5, 1e20)
          .put("bools", true, false)
          .put("session.id", "session-1")
          .put("http.route", "/cart/:id")
          .put("http.response.status_code", 500)
          .build();

  public static void main(String[] args) {
    try (OpenTelemetrySdk sdk =
        AutoConfiguredOpenTelemetrySdk.builder()
            .addMeterProviderCustomizer(
                (meters, config) ->
                    meters.registerView(
                        InstrumentSelector.builder().setName("size").build(),
                        View.builder().setAggregation(Aggregation.base2ExponentialBucketHistogram()).build()))
            .build()
            .getOpenTelemetrySdk()) {
      Context inTrace = sendTraces(sdk);
      sendLogs(sdk, inTrace);
      sendMetrics(sdk, inTrace);
    }
  }

  private static Context sendTraces(OpenTelemetrySdk sdk) {
    var tracer = sdk.getTracerProvider().tracerBuilder("shop").setInstrumentationVersion("0.9").build();
    var state = TraceState.builder().put("vendor", "a").build();
    var other =
        SpanContext.createFromRemoteParent("ab".repeat(16), "cd".repeat(8), TraceFlags.getSampled(), state);
    Context last = Context.root();
    for (SpanKind kind : SpanKind.values()) {
      Span parent =
          tracer
              .spanBuilder("parent " + kind)
              .setParent(Context.root().with(Span.wrap(other)))
              .setSpanKind(kind)
              .setAllAttributes(ATTRIBUTES)
              .startSpan();
      last = Context.root().with(parent);
      Span child =
          tracer
              .spanBuilder("Käse")
              .setParent(last)
              .addLink(other, ATTRIBUTES)
              .addLink(parent.getSpanContext())
              .startSpan();
      child.addEvent("step", ATTRIBUTES);
      child.recordException(new IllegalStateException("amount 17 is out of range"));
      child.setStatus(StatusCode.ERROR, "Größe").end();
      parent.setStatus(StatusCode.OK).end();
    }
    return last;
  }

  private static void sendLogs(OpenTelemetrySdk sdk, Context context) {
    var logger = sdk.getLogsBridge().loggerBuilder("shop").setInstrumentationVersion("0.9").build();
    var bodies =
        List.<Value<?>>of(
            Value.of("Zürich 🫕"),
            Value.of(""),
            Value.of(Long.MIN_VALUE),
            Value.of(0.1),
            Value.of(true),
            Value.of(Value.of("a"), Value.of(Value.of(false))),
            Value.of(Map.of("a", Value.of(Map.of("b", Value.of("ü"))))),
            Value.of(new byte[] {0, 1, -2, -1}));
    for (Value<?> body : bodies) {
      logger
          .logRecordBuilder()
          .setContext(context)
          .setSeverity(Severity.INFO)
          .setSeverityText("INFO")
          .setEventName("order.placed")
          .setBody(body)
          .setAllAttributes(ATTRIBUTES)
          .emit();
    }
  }

  private static void sendMetrics(OpenTelemetrySdk sdk, Context context) {
    var meter = sdk.getMeterProvider().meterBuilder("shop").setInstrumentationVersion("0.9").build();
    meter.counterBuilder("orders").setUnit("{order}").setDescription("Placed orders").build().add(1L << 62, ATTRIBUTES);
    meter.upDownCounterBuilder("queue").build().add(-5, ATTRIBUTES);
    var room = Attributes.of(AttributeKey.stringKey("room"), "Büro");
    meter.gaugeBuilder("temperature").setUnit("Cel").build().set(-40.5, room);
    var duration = meter.histogramBuilder("duration").setUnit("ms").build();
    var size = meter.histogramBuilder("size").setUnit("By").build();
    for (double value : new double[] {0, 3, 70, 12_345.6}) {
      duration.record(value, ATTRIBUTES, context);
      size.record(value, ATTRIBUTES, context);
    }
  }
}
