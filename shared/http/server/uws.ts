import { createRequire } from 'node:module'

/** Types of uWebSockets.js that this room uses. */
export type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js'

// uWS reads its limit on the size of a request's head from the environment, once, while it is loaded. There is no
// option for it. With the default of 4 KiB, a page whose cookies come with the replay metadata gets 431. 16 KiB is the
// limit of Node.
// biome-ignore lint/style/noProcessEnv: the only knob of a native library, written here and read nowhere else
process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384'

/** uWebSockets.js, loaded here only. It is required, not imported, because the line above must run first. */
export const uws: typeof import('uWebSockets.js') = createRequire(import.meta.url)('uWebSockets.js')
