import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeSecrets } from './composition.ts'
import { buildImages, startEngine } from './engine.ts'

/**
 * Entry point of `npm run test:compose`: builds the image, then runs the tests on containers that compose.yaml describes. Where no
 * engine of Docker runs or can be started, it states so and passes.
 */
const VITEST = fileURLToPath(new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url))
const CONFIG = 'test/support/setup/compose-vitest.config.ts'

const engine = await startEngine()
if (typeof engine === 'string') {
  console.log(`SKIPPED, no container is started: ${engine}`)
} else {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-compose-'))
  try {
    console.log('building the images')
    await buildImages()
    await makeSecrets(dir)
    process.exitCode = await test({
      ...process.env,
      PENSTOCK_SECRETS: dir,
      PENSTOCK_STACK: 'compose',
      // The certificate of the proxy, which no authority has signed.
      NODE_EXTRA_CA_CERTS: join(dir, 'tls/certificate.pem'),
    })
  } finally {
    await rm(dir, { recursive: true, force: true })
    await engine()
  }
}

function test(env: NodeJS.ProcessEnv): Promise<number> {
  const args = [VITEST, 'run', '--config', CONFIG, ...process.argv.slice(2)]
  const child = spawn(process.execPath, args, { stdio: 'inherit', env })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', code => resolve(code ?? 1))
  })
}
