/** Texts of attributes by their names. */
export type AttributeTexts = ReadonlyMap<string, string>

/** Length to which these texts are cut, in bytes. */
export const PLACE_TEXT_BYTES = 512

/** Attributes of a resource, span or log record that state where an exception occurred (workers/exceptions/places.ts). */
export const PLACE_ATTRIBUTES: ReadonlySet<string> = new Set([
  'browser.brands',
  'browser.platform',
  'deployment.environment',
  'deployment.environment.name',
  'error.type',
  'host.name',
  'http.method',
  'http.request.method',
  'http.response.status_code',
  'http.route',
  'http.status_code',
  'http.target',
  'http.url',
  'http.user_agent',
  'k8s.pod.name',
  'os.name',
  'os.type',
  'os.version',
  'url.full',
  'url.path',
  'url.template',
  'user_agent.name',
  'user_agent.original',
  'user_agent.os.name',
  'user_agent.os.version',
  'user_agent.version',
])
