import type { HostileEvents } from './events.ts'

const PLUGIN = 6

/** Recorded lines and requests whose times no clock can show. */
export const HOSTILE_TIMES: HostileEvents = {
  name: 'times of lines and requests',
  events: at =>
    [1e300, -1e300, 8.64e15 + 1, -1].flatMap(time => [
      {
        type: PLUGIN,
        timestamp: at,
        data: {
          plugin: 'rrweb/network@1',
          payload: { requests: [{ method: 'GET', name: '/late', status: 500, timestamp: time }] },
        },
      },
      {
        type: PLUGIN,
        timestamp: Math.max(time, at),
        data: { plugin: 'rrweb/console@1', payload: { level: 'error', trace: [], payload: ['"late"'] } },
      },
    ]),
}
