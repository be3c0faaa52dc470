import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MANIFEST } from '../../deploy/release/manifest.ts'
import { type Composition, type ServiceName, startComposition } from '../support/containers/composition.ts'
import { docker } from '../support/containers/engine.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const PROCESSES: readonly ServiceName[] = ['edge', 'workers-telemetry', 'workers-rest', 'workers-deliveries', 'api']
const COMPRESSED_BYTES = 200_000_000

describe('the image', () => {
  it('is smaller than 200 MB when it is compressed', async () => {
    const { stdout } = await run('sh', ['-c', 'docker save penstock | gzip -6 | wc -c'])
    console.log(`${Math.round(Number(stdout) / 1e6)} MB compressed`)
    expect(Number(stdout)).toBeLessThan(COMPRESSED_BYTES)
  })

  it('has the version of package.json in its label, its processes and its command line', async () => {
    const label = '{{index .Config.Labels "org.opencontainers.image.version"}}'
    expect(await docker('inspect', '--format', label, 'penstock')).toBe(MANIFEST.version)
    for (const command of [['edge'], ['penstock']]) {
      expect(await docker('run', '--rm', 'penstock', ...command, '--version')).toBe(MANIFEST.version)
    }
  })

  it('lists its commands, and refuses others', async () => {
    const refused = await docker('run', '--rm', 'penstock', 'wrokers').catch(
      (error: { code: number; stderr: string }) => error,
    )
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('migrate [--force]') })
  })

  it('contains neither Node a second time nor what only tests and npm start need', async () => {
    const packages = (await docker('run', '--rm', 'penstock', 'ls', '/app/node_modules')).split('\n')
    expect(packages).toContain('uWebSockets.js')
    expect(
      packages.filter(name =>
        /^(node-(linux|darwin|bin)|chdb|miniflare|ffi-rs|pino-pretty|vitest|typescript)/.test(name),
      ),
    ).toEqual([])
    const tests = await docker(
      'run',
      '--rm',
      'penstock',
      'find',
      '/app',
      '-path',
      '*/node_modules',
      '-prune',
      '-o',
      '-name',
      '*.test.ts',
      '-print',
    )
    expect(tests).toBe('')
  })
})

describe('the containers of compose.yaml', () => {
  let composition: Composition

  beforeAll(async () => {
    composition = await startComposition()
  })
  afterAll(() => composition?.stop())

  it.each(PROCESSES)(
    '%s runs as a plain user without capabilities, and can write nowhere but in /tmp',
    async service => {
      for (const name of composition.containers(service)) {
        const status = await docker('exec', name, 'cat', '/proc/1/status')
        expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m)
        expect(status).toMatch(/^CapBnd:\t0+$/m)
        expect(status).toMatch(/^NoNewPrivs:\t1$/m)
        await expect(docker('exec', name, 'touch', '/app/x')).rejects.toThrow('Read-only file system')
        await docker('exec', name, 'touch', '/tmp/x')
        const { Memory } = JSON.parse(await docker('inspect', '--format', '{{json .HostConfig}}', name)) as {
          Memory: number
        }
        expect(Memory).toBeGreaterThan(0)
      }
    },
  )

  it('shows by its health whether the edge is alive, and apart from that whether it is ready', async () => {
    const [edge = ''] = composition.containers('edge')
    const check = (...args: string[]) => docker('exec', edge, '/app/deploy/docker/healthcheck.sh', ...args)
    await check()
    await check('readyz')
    await docker('pause', ...composition.containers('directory'))
    try {
      await until(
        'the edge is not ready',
        () =>
          check('readyz').then(
            () => false,
            () => true,
          ),
        { deadlineMs: 60_000, everyMs: 200 },
      )
      await check()
    } finally {
      await docker('unpause', ...composition.containers('directory'))
    }
    await until(
      'the edge is ready',
      () =>
        check('readyz').then(
          () => true,
          () => false,
        ),
      { deadlineMs: 60_000, everyMs: 200 },
    )
  })

  it('starts a container again whose process has died', async () => {
    const [edge = ''] = composition.containers('edge')
    const pid = Number(await docker('inspect', '--format', '{{.State.Pid}}', edge))
    process.kill(pid, 'SIGKILL')
    const restarts = async () => Number(await docker('inspect', '--format', '{{.RestartCount}}', edge))
    await until('it runs again', async () => (await restarts()) === 1, { deadlineMs: 60_000, everyMs: 200 })
    await composition.start(edge)
  })

  it('scrapes every process, with the alerts of this project', async () => {
    const query = async (path: string) => (await fetch(`${composition.prometheusUrl}/api/v1/${path}`)).json()
    await until(
      'every process is scraped',
      async () => {
        const { data } = (await query('query?query=sum(up)')) as { data: { result: { value: [number, string] }[] } }
        return Number(data.result[0]?.value[1]) === PROCESSES.flatMap(service => composition.containers(service)).length
      },
      { deadlineMs: 90_000, everyMs: 500 },
    )
    expect(JSON.stringify(await query('rules'))).toContain('PenstockQueueOld')
  })

  it('runs the commands of operators', async () => {
    const { penstock } = composition
    expect(await penstock('workspace', 'list')).toContain('local')
    const backup = JSON.parse(await penstock('backup', 'create', '--json'))
    expect(backup.directory.isEncrypted).toBe(true)
    await penstock('backup', 'verify', '--backup', backup.name)
    // It ends with 12 after warnings.
    const doctor = await penstock('doctor', '--json').catch(({ stdout }: { stdout: string }) => stdout.trim())
    const findings = doctor.split('\n').map(line => JSON.parse(line))
    expect(findings.map(({ check }) => check)).toContain('backups')
    expect(findings.filter(({ result }) => result === 'fault')).toEqual([])
  })
})
