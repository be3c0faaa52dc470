import { beforeEach, describe, expect, it } from 'vitest'
import { Passes } from './passes.ts'

describe('the passes of a release', () => {
  let uploads: string[][]
  let warnings: string[]
  let passes: Passes
  beforeEach(() => {
    ;[uploads, warnings] = [[], []]
    passes = new Passes({
      upload: async (_options, outputs) => uploads.push(outputs.map(({ directory }) => directory)),
      warn: text => warnings.push(text),
    })
  })

  const run = async (directory: string, pass = {}) => {
    passes.begin(pass)
    passes.add({ directory, files: [`${directory}/a.js`] })
    await passes.end(pass)
  }

  it('are uploaded together when the last open one has ended', async () => {
    const [first, second] = [{}, {}]
    passes.begin(first)
    passes.begin(second)
    passes.add({ directory: 'client' })
    await passes.end(first)
    expect(uploads).toEqual([])
    passes.add({ directory: 'server' })
    await passes.end(second)
    await passes.end(second)
    expect(uploads).toEqual([['client', 'server']])
  })

  it('are uploaded together when as many as expected have ended', async () => {
    passes.use({ passes: 2 })
    await run('client')
    expect(uploads).toEqual([])
    await run('server')
    expect(uploads).toEqual([['client', 'server']])
    expect(warnings).toEqual([])
  })

  it('wait for who holds them back', async () => {
    passes.begin(passes)
    await run('client')
    await run('server')
    expect(uploads).toEqual([])
    await passes.end(passes, { isPass: false })
    expect(uploads).toEqual([['client', 'server']])
  })

  it('are not uploaded after a failure, and the next build is', async () => {
    passes.use({ passes: 2 })
    await run('client')
    const pass = {}
    passes.begin(pass)
    passes.fail(pass)
    await run('server', pass)
    // A compiler calls its hook for failures after an upload that fails the build.
    passes.fail(pass)
    expect(uploads).toEqual([])
    await run('client')
    await run('server')
    expect(uploads).toEqual([['client', 'server']])
  })

  it('warn when they replace each other, and not when a build is repeated', async () => {
    await run('client')
    await run('client')
    expect(warnings).toEqual([])
    await run('server')
    expect(warnings).toEqual([expect.stringContaining('set the option passes')])
  })
})
