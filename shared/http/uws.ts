import { createRequire } from 'node:module'

export type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js'

// uWS takes its limit on the size of a request's head from the environment, once, while it is loaded; there is no option
// for it. The default of 4 KiB answers 431 to a page whose cookies come with the replay metadata; 16 KiB is Node's own.
// biome-ignore lint/style/noProcessEnv: a native library's only knob, written here and read nowhere else
process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384'

/** The one place that loads uWebSockets.js; required, not imported, because the line above must come first. */
export const uws: typeof import('uWebSockets.js') = createRequire(import.meta.url)('uWebSockets.js')
