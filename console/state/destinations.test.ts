import { beforeAll, describe, expect, it, vi } from 'vitest'

/** The address of a page is read when the module of addresses is. */
beforeAll(() => vi.stubGlobal('location', { pathname: '/console/logs', search: '?from=now-2h' }))

describe('a searched text', () => {
  const first = async (text: string) => {
    const { destinationsOf } = await import('./destinations.ts')
    return destinationsOf(text)[0]?.address
  }

  it.each([
    ['4BF92F3577B34DA6A3CE929D0E0E4736', 'traces/4bf92f3577b34da6a3ce929d0e0e4736'],
    [
      '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      'traces/4bf92f3577b34da6a3ce929d0e0e4736?span=00f067aa0ba902b7',
    ],
    ['00f067aa0ba902b7', 'logs?span=00f067aa0ba902b7'],
    [' fnd_aaaaaaaaaaaaaaaaaaaaaaaaaa ', 'findings/fnd_aaaaaaaaaaaaaaaaaaaaaaaaaa'],
    ['ed45363c-2e66-429a-ac35-621cc82996fb', 'sessions/ed45363c-2e66-429a-ac35-621cc82996fb'],
    ['ada@example.com', 'sessions?user=ada%40example.com'],
    ['v1.4.2', 'releases?version=v1.4.2'],
    ['payment refused', 'findings?q=payment+refused'],
  ])('%s', async (text, path) => {
    const range = 'from=now-2h'
    expect(await first(text)).toBe(`/console/${path}${path.includes('?') ? '&' : '?'}${range}`)
  })

  it('leads nowhere while it is empty', async () => {
    expect(await first('  ')).toBeUndefined()
  })
})
