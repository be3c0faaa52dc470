import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { meterProcesses } from './process-meter.ts'

const children: ReturnType<typeof spawn>[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Starts a child that runs `body` for every line of stdin, and reports the CPU seconds it has used since its start. */
async function startChild(body: string): Promise<{ pid: number; work(): Promise<number>; end(): Promise<void> }> {
  const script = `process.stdin.on('data', () => {
    ${body}
    const { user, system } = process.cpuUsage()
    process.stdout.write(String((user + system) / 1e6))
  })
  process.stdout.write('up')`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(child)
  await once(child.stdout, 'data')
  return {
    pid: child.pid as number,
    async work() {
      child.stdin.write('go')
      const [cpuSeconds] = await once(child.stdout, 'data')
      return Number(cpuSeconds)
    },
    async end() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

const SPIN = 'for (const start = performance.now(); performance.now() - start < 400; ) Math.sqrt(start)'

describe('meterProcesses', () => {
  it('counts the CPU time of each process between begin and end', async () => {
    const [busy, idle] = [await startChild(SPIN), await startChild('')]
    const before = await busy.work()
    const meter = meterProcesses({ busy: busy.pid, idle: idle.pid })
    meter.begin()
    const spent = (await busy.work()) - before
    const use = meter.end()
    expect(Math.abs((use.busy?.cpuSeconds ?? 0) - spent)).toBeLessThan(0.05 + spent / 10)
    expect(use.busy?.cpuSeconds).toBeGreaterThan(0.02)
    expect(use.idle?.cpuSeconds).toBeLessThan(0.1)
  })

  it('reports the peak of memory, not its final size', async () => {
    const child = await startChild('Buffer.alloc(150e6, 1); global.gc?.()')
    const meter = meterProcesses({ child: child.pid })
    meter.begin()
    await child.work()
    expect(meter.end().child?.peakMemoryBytes).toBeGreaterThan(150e6)
  })

  it('throws an error that names the process that has ended', async () => {
    const child = await startChild('')
    const meter = meterProcesses({ worker: child.pid })
    meter.begin()
    await child.end()
    expect(() => meter.end()).toThrow(/"worker" \(\d+\) has ended/)
  })
})
