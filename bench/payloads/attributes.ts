/** Returns a text attribute. */
export function text(key: string, value: string) {
  return { key, value: { value: { case: 'stringValue' as const, value } } }
}

/** Returns a whole number as an attribute. */
export function int(key: string, value: bigint | number) {
  return { key, value: { value: { case: 'intValue' as const, value: BigInt(value) } } }
}

/** Returns the ten attributes of the resource of a web service. */
export function webService(service: string, instance = service) {
  return [
    text('service.name', service),
    text('service.version', '2.14.3'),
    text('service.instance.id', `0f7c1b1e-8d4f-4f0e-9a57-${instance}`),
    text('deployment.environment.name', 'production'),
    text('host.name', 'ip-10-12-33-7.eu-central-1.compute.internal'),
    int('process.pid', 31_337n),
    text('process.runtime.name', 'nodejs'),
    text('process.runtime.version', '22.20.0'),
    text('telemetry.sdk.language', 'nodejs'),
    text('telemetry.sdk.version', '2.1.0'),
  ]
}
