import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { claimDirectory } from './lock.ts'

const GONE_PID = 2 ** 22 + 1

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-lock-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it('takes over the claim of a process that has ended', () => {
  writeFileSync(join(directory, 'supervisor.pid'), String(GONE_PID))
  const claim = claimDirectory(directory)
  if ('heldBy' in claim) throw new Error('the directory is claimed')
  expect(existsSync(join(directory, 'supervisor.pid'))).toBe(true)
  claim.release()
  expect(existsSync(join(directory, 'supervisor.pid'))).toBe(false)
})

it.runIf(process.platform === 'linux')('takes over a claim whose pid now belongs to another program', () => {
  writeFileSync(join(directory, 'supervisor.pid'), String(process.ppid))
  expect('release' in claimDirectory(directory)).toBe(true)
})
