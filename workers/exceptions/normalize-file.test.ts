import { expect, it } from 'vitest'
import { normalizeFile } from './normalize-file.ts'

it.each([
  ['https://cdn.test/assets/app.3f9a2c1b.js', '/assets/app.*.js'],
  ['https://cdn.test/assets/index-DkJ2x9aB.js?v=2#x', '/assets/index-*.js'],
  ['https://cdn.test/assets/index-a_-Bx9dK.js', '/assets/index-*.js'],
  ['https://cdn.test/chunk-2Q7LQXJH.js', '/chunk-*.js'],
  ['app:///main.8d7e3f9a2c1b44aa.chunk.js', '/main.*.chunk.js'],
  ['https://cdn.test/_next/static/chunks/4bd1b696-8d5ac84b5c1b3f2d.js', '/_next/static/chunks/*.js'],
  ['/srv/releases/20251120113000/dist/server.js', '/srv/releases/*/dist/server.js'],
  ['/srv/v2.14.3/dist/server.js', '/srv/*/dist/server.js'],
  ['/builds/0f7c1b1e-8d4f-4f0e-9a57-6a1f7c7d2f11/main.js', '/builds/*/main.js'],
  ['C:\\app\\Orders\\Repository.cs', 'C:/app/Orders/Repository.cs'],
  ['node:internal/process/task_queues', 'node:internal/process/task_queues'],
  ['/srv/node_modules/lodash-es/debounce.js', '/srv/node_modules/lodash-es/debounce.js'],
  ['/srv/src/user-settings.js', '/srv/src/user-settings.js'],
  ['/srv/src/polyfills-es2015.js', '/srv/src/polyfills-es2015.js'],
  ['Repository.java', 'Repository.java'],
  ['<anonymous>', '<anonymous>'],
  ['', ''],
])('%s is %s in every release', (file, normalized) => {
  expect(normalizeFile(file)).toBe(normalized)
})
