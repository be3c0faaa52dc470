import { expect, it, vi } from 'vitest'
import { countAwakeMs } from '../../../test/support/count-awake-ms.ts'
import { startChild } from './child-process.ts'
import { createSupervisor, restartDelayMs, type Unit } from './supervisor.ts'

/** Returns a unit that runs a shell. On SIGTERM the shell runs `onTerm`. */
function shellUnit(name: string, stopStage: number, options: { onTerm?: string; stopDeadlineMs?: number } = {}) {
  const pids: number[] = []
  const unit: Unit = {
    name,
    stopStage,
    stopDeadlineMs: options.stopDeadlineMs ?? 2_000,
    async start() {
      const trapped = Promise.withResolvers<string>()
      const child = await startChild({
        command: 'sh',
        args: ['-c', `trap '${options.onTerm ?? 'exit 0'}' TERM; echo up; while :; do sleep 0.01; done`],
        log: trapped.resolve,
      })
      await trapped.promise
      pids.push(child.pid)
      return child
    },
  }
  return { unit, pids }
}

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

it('restarts a killed process, without a delay the first time', async () => {
  const supervisor = createSupervisor({ log: () => {} })
  const { unit, pids } = shellUnit('victim', 0)
  await supervisor.run(unit)
  const awakeMs = countAwakeMs()
  process.kill(pids[0] as number, 'SIGKILL')
  await vi.waitFor(() => expect(pids).toHaveLength(2), { interval: 10, timeout: 5_000 })
  expect(awakeMs()).toBeLessThan(1_000)
  await supervisor.stop()
  expect(pids.map(isRunning)).toEqual([false, false])
})

it('stops stage by stage and kills a process that misses its deadline', async () => {
  const ended: string[] = []
  const supervisor = createSupervisor({ log: () => {} })
  const late = shellUnit('late', 1, { onTerm: ':', stopDeadlineMs: 300 })
  const early = shellUnit('early', 0)
  for (const { unit } of [late, early]) {
    const start = unit.start
    await supervisor.run({
      ...unit,
      async start(signal) {
        const child = await start(signal)
        void child.exited.then(exit => ended.push(`${unit.name} ${exit.signal ?? exit.code}`))
        return child
      },
    })
  }
  await supervisor.stop()
  expect(ended).toEqual(['early 0', 'late SIGKILL'])
})

it('tries again when a restart fails', async () => {
  const lines: string[] = []
  const supervisor = createSupervisor({ log: (_, text) => lines.push(text) })
  const { unit, pids } = shellUnit('unlucky', 0)
  let attempts = 0
  await supervisor.run({
    ...unit,
    start: signal => (++attempts === 2 ? Promise.reject(new Error('not now')) : unit.start(signal)),
  })
  process.kill(pids[0] as number, 'SIGKILL')
  await vi.waitFor(() => expect(pids).toHaveLength(2), { interval: 10, timeout: 5_000 })
  expect(lines).toContain('could not be started: Error: not now')
  await supervisor.stop()
})

it('rejects when the first start fails', async () => {
  const supervisor = createSupervisor({ log: () => {} })
  const unit: Unit = { name: 'x', stopStage: 0, stopDeadlineMs: 1, start: () => Promise.reject(new Error('no')) }
  await expect(supervisor.run(unit)).rejects.toThrow('no')
  await supervisor.stop()
})

it('waits longer after every failure, up to 5 s', () => {
  expect([0, 1, 2, 3, 10].map(restartDelayMs)).toEqual([0, 200, 400, 800, 5_000])
})
