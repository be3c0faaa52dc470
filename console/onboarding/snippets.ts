/** Where clients send, and with which public key. */
export interface Access {
  /** Base address of the edge, without a slash at its end. */
  readonly endpoint: string
  readonly publicKey: string
}

/** An example that sends something as it is pasted. The console shows it, and tests run it. */
export interface Snippet {
  readonly id: string
  readonly name: string
  /** Where it is pasted, and what else is needed. */
  readonly use: string
  readonly text: (access: Access) => string
}

/** Returns the variables that every SDK of OpenTelemetry reads. A public key needs no encoding in a header. */
export function otelSettings({ endpoint, publicKey }: Access): Readonly<Record<string, string>> {
  return {
    OTEL_SERVICE_NAME: 'shop',
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_HEADERS: `x-service-public-key=${publicKey}`,
  }
}

function exportsOf(access: Access): string {
  return Object.entries(otelSettings(access))
    .map(([name, value]) => `export ${name}=${value}`)
    .join('\n')
}

const TERMINAL = 'Paste it into a terminal: it sends a span.'

const node: Snippet = {
  id: 'node',
  name: 'Node.js',
  use: `${TERMINAL} Your application is started like that, without a change of its code: node --import @penstock/node app.js`,
  text: ({ endpoint, publicKey }) => `npm install @penstock/node @opentelemetry/api
export PENSTOCK_URL=${endpoint}
export PENSTOCK_KEY=${publicKey}
export OTEL_SERVICE_NAME=shop
cat > first-span.mjs <<'END'
import { trace } from '@opentelemetry/api'

trace.getTracer('shop').startActiveSpan('GET /cart', span => span.end())
END
node --import @penstock/node first-span.mjs
`,
}

const python: Snippet = {
  id: 'python',
  name: 'Python',
  use: `${TERMINAL} For a whole application, opentelemetry-instrument of the package opentelemetry-distro reads the same variables.`,
  text: access => `pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
${exportsOf(access)}
cat > first_span.py <<'END'
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
with provider.get_tracer("shop").start_as_current_span("GET /cart"):
    pass
provider.shutdown()
END
python3 first_span.py
`,
}

const java: Snippet = {
  id: 'java',
  name: 'Java',
  use: 'Paste it into a terminal, with the name of your application. The agent instruments it without a change of its code.',
  text: access => `curl -sSfLO https://github.com/open-telemetry/opentelemetry-java-instrumentation/releases/latest/download/opentelemetry-javaagent.jar
${exportsOf(access)}
java -javaagent:opentelemetry-javaagent.jar -jar app.jar
`,
}

const go: Snippet = {
  id: 'go',
  name: 'Go',
  use: TERMINAL,
  text: access => `mkdir first-span && cd first-span && go mod init first-span
${exportsOf(access)}
cat > main.go <<'END'
package main

import (
	"context"
	"log"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	_, span := provider.Tracer("shop").Start(ctx, "GET /cart")
	span.End()
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}
END
go mod tidy && go run .
`,
}

const dotnet: Snippet = {
  id: 'dotnet',
  name: '.NET',
  use: TERMINAL,
  text: access => `dotnet new console --output first-span && cd first-span
dotnet add package OpenTelemetry.Exporter.OpenTelemetryProtocol
${exportsOf(access)}
cat > Program.cs <<'END'
using System.Diagnostics;
using OpenTelemetry;
using OpenTelemetry.Trace;

using var source = new ActivitySource("shop");
using var provider = Sdk.CreateTracerProviderBuilder().AddSource("shop").AddOtlpExporter().Build();
using (source.StartActivity("GET /cart")) { }
END
dotnet run
`,
}

const browser: Snippet = {
  id: 'browser',
  name: 'Browser',
  use: 'A module of your page, for your bundler: npm install @penstock/browser. It sends page loads, requests, errors, web vitals, the session and its recording. In production, give it a path of your own origin that a proxy forwards.',
  text: ({ endpoint, publicKey }) => `import { init } from '@penstock/browser'

const penstock = init({
  url: '${endpoint}',
  key: '${publicKey}',
  service: 'shop-web',
  recording: { sample: 1 },
})
// Once it is known who the user is.
penstock.identify('user-17', { name: 'Ada' })
`,
}

const collector: Snippet = {
  id: 'collector',
  name: 'Collector',
  use: 'A configuration of the OpenTelemetry Collector: otelcol --config collector.yaml. Your SDKs send to its ports.',
  text: ({ endpoint, publicKey }) => `receivers:
  otlp:
    protocols:
      grpc: { endpoint: "127.0.0.1:14317" }
      http: { endpoint: "127.0.0.1:14318" }
exporters:
  otlphttp:
    endpoint: "${endpoint}"
    headers: { x-service-public-key: "${publicKey}" }
service:
  pipelines:
    traces: { receivers: [otlp], exporters: [otlphttp] }
    logs: { receivers: [otlp], exporters: [otlphttp] }
    metrics: { receivers: [otlp], exporters: [otlphttp] }
`,
}

const release: Snippet = {
  id: 'release',
  name: 'Release and source maps',
  use: 'A step of your build, after the bundler. It needs a secret key of the surface, from Settings.',
  text: ({ endpoint }) => `export PENSTOCK_URL=${endpoint}
export PENSTOCK_SECRET_KEY=sk_…
npx penstock sourcemaps upload dist --version 1.4.2
`,
}

const vite: Snippet = {
  id: 'vite',
  name: 'Vite',
  use: 'vite.config.js, after npm install --save-dev @penstock/build. PENSTOCK_SECRET_KEY must have a secret key of the surface, from Settings. The package has plugins for Rollup, Rolldown, webpack, Rspack, esbuild and Next too.',
  text: ({ endpoint }) => `import penstock from '@penstock/build/vite'

export default {
  plugins: [penstock({ url: '${endpoint}', version: '1.4.2' })],
}
`,
}

/** Ways to send traces, logs and metrics. */
export const OTEL_SNIPPETS: readonly Snippet[] = [node, python, java, go, dotnet, browser, collector]
/** Ways to begin a session. */
export const SESSION_SNIPPETS: readonly Snippet[] = [browser]
/** Ways to register a release. */
export const RELEASE_SNIPPETS: readonly Snippet[] = [release, vite]
