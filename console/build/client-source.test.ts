import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { CLIENT_FILE, clientSource } from './client-source.ts'

it('is the client in the repository: run "npm run generate:console" after a change of the API', async () => {
  expect(readFileSync(CLIENT_FILE, 'utf8')).toBe(await clientSource())
})
