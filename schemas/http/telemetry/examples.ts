import { EXAMPLE, EXAMPLE_EXCEPTION } from '../example-values.ts'

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })

/** An OTLP export of one failed span with an exception, in JSON. */
export const EXAMPLE_EXPORT = {
  resourceSpans: [
    {
      resource: {
        attributes: [text('service.name', EXAMPLE.serviceName), text('service.version', EXAMPLE.version)],
      },
      scopeSpans: [
        {
          spans: [
            {
              traceId: EXAMPLE.traceId,
              spanId: EXAMPLE.spanId,
              name: 'GET /cart',
              kind: 2,
              startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
              endTimeUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
              attributes: [text('session.id', EXAMPLE.sessionId), text('http.route', '/cart')],
              events: [
                {
                  name: 'exception',
                  timeUnixNano: `${EXAMPLE.recordedAtMs + 41}000000`,
                  attributes: [
                    text('exception.type', EXAMPLE_EXCEPTION.type),
                    text('exception.message', EXAMPLE_EXCEPTION.message),
                    text('exception.stacktrace', EXAMPLE_EXCEPTION.stacktrace),
                  ],
                },
              ],
              status: { code: 2, message: EXAMPLE_EXCEPTION.message },
            },
          ],
        },
      ],
    },
  ],
} as const

/** The same export in protobuf, as base64. */
export const EXAMPLE_EXPORT_BASE64 =
  'CpsDCjQKFgoMc2VydmljZS5uYW1lEgYKBHNob3AKGgoPc2VydmljZS52ZXJzaW9uEgcKBTEuNC4wEuICEt8CChBbjv/3mAOBA9JptjOBP8YMEgju4Zt+w8GxdCoJR0VUIC9jYXJ0MAI5AADzI4Rb1xhBgN5zJoRb1xhKGQoKc2Vzc2lvbi5pZBILCglzZXNzaW9uLTFKFQoKaHR0cC5yb3V0ZRIHCgUvY2FydFrYAQlAnGQmhFvXGBIJZXhjZXB0aW9uGiIKDmV4Y2VwdGlvbi50eXBlEhAKDkVtcHR5Q2FydEVycm9yGigKEWV4Y2VwdGlvbi5tZXNzYWdlEhMKEXRoZSBjYXJ0IGlzIGVtcHR5GnQKFGV4Y2VwdGlvbi5zdGFja3RyYWNlElwKWkVtcHR5Q2FydEVycm9yOiB0aGUgY2FydCBpcyBlbXB0eQogICAgYXQgY2hlY2tvdXQgKGh0dHBzOi8vc2hvcC5leGFtcGxlL2Fzc2V0cy9hcHAuanM6MToxKXoVEhF0aGUgY2FydCBpcyBlbXB0eRgC'
