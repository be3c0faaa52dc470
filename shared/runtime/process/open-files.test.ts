import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { openFilesWarning } from './open-files.ts'

it('warns of a limit that is below the connections and the files of the process itself', () => {
  expect(openFilesWarning(20_000, 1_024)).toBe(
    'this process may open 1024 files, which is too few for 20000 connections: allow it 20500 (ulimit -n, LimitNOFILE of systemd), or set MAX_CONNECTIONS to less',
  )
  expect(openFilesWarning(20_000, 20_499)).toContain('20499')
  expect(openFilesWarning(20_000, 20_500)).toBeUndefined()
})

it.runIf(process.platform === 'linux')('reads the limit of the process', () => {
  const source = `import { openFilesWarning } from ${JSON.stringify(new URL('open-files.ts', import.meta.url).href)}
    console.log(openFilesWarning(20_000))`
  const command = 'ulimit -n 256 && exec "$0" --input-type=module-typescript --eval "$1"'
  const text = execFileSync('sh', ['-c', command, process.execPath, source], { encoding: 'utf8' })
  expect(text).toMatch(/^this process may open 256 files/)
})
