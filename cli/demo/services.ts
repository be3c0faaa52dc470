import type { Attributes } from './otlp.ts'

/** A service of the shop. Each is written in another language. */
export type Service = 'shop-web' | 'gateway' | 'orders' | 'payment' | 'inventory' | 'pricing'

const sdk = (language: string, version: string) => ({
  'telemetry.sdk.name': 'opentelemetry',
  'telemetry.sdk.language': language,
  'telemetry.sdk.version': version,
})

/** Resources as the SDKs of these languages detect them. */
const RESOURCES: Readonly<Record<Service, Attributes>> = {
  'shop-web': { ...sdk('webjs', '2.1.0'), 'browser.platform': 'macOS', 'browser.language': 'en-GB' },
  gateway: {
    ...sdk('nodejs', '2.1.0'),
    'service.version': '5.12.1',
    'host.name': 'gateway-6c9f8',
    'process.runtime.name': 'nodejs',
    'process.runtime.version': '22.23.3',
  },
  orders: {
    ...sdk('java', '1.55.0'),
    'service.version': '1.88.0',
    'host.name': 'orders-7d9f6-x2lkq',
    'telemetry.distro.name': 'opentelemetry-java-instrumentation',
    'process.runtime.name': 'OpenJDK Runtime Environment',
  },
  payment: {
    ...sdk('python', '1.38.0'),
    'service.version': '0.41.3',
    'host.name': 'payment-0',
    'telemetry.auto.version': '0.59b0',
    'process.runtime.name': 'cpython',
  },
  inventory: {
    ...sdk('go', '1.38.0'),
    'service.version': 'v3.2.0',
    'host.name': 'inventory-5c',
    'process.runtime.name': 'go',
  },
  pricing: {
    ...sdk('dotnet', '1.13.1'),
    'service.version': '2.6.0',
    'host.name': 'pricing-84bd',
    'process.runtime.name': '.NET',
  },
}

const SCOPES: Readonly<Record<Service, readonly [name: string, version: string]>> = {
  'shop-web': ['@opentelemetry/instrumentation-fetch', '0.208.0'],
  gateway: ['@opentelemetry/instrumentation-http', '0.208.0'],
  orders: ['io.opentelemetry.tomcat-10.0', '2.21.0-alpha'],
  payment: ['opentelemetry.instrumentation.flask', '0.59b0'],
  inventory: ['go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc', '0.63.0'],
  pricing: ['Microsoft.AspNetCore', ''],
}

/** Instrumentations of databases have scopes of their own. */
const DATABASE_SCOPES: Partial<Readonly<Record<Service, readonly [name: string, version: string]>>> = {
  orders: ['io.opentelemetry.jdbc', '2.21.0-alpha'],
  inventory: ['github.com/XSAM/otelsql', '0.40.0'],
  pricing: ['Npgsql', '9.0.4'],
}

/** Returns the resource of a service. `version` is that of the page, which has releases. */
export function resourceOf(service: Service, version: string): Attributes {
  return {
    'service.name': service,
    'service.version': version,
    'deployment.environment.name': 'production',
    ...RESOURCES[service],
  }
}

/** Returns the scope of the instrumentation that makes a span or a log record with these attributes. */
export function scopeOf(service: Service, attributes: Attributes): { name: string; version: string } {
  const own = 'db.system.name' in attributes ? DATABASE_SCOPES[service] : undefined
  const [name, version] = own ?? SCOPES[service]
  return { name, version }
}
