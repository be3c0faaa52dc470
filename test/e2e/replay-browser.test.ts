import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { type PageServer, servePages } from '../support/pages/serve-pages.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of replay in a browser: missing ${browserFound.missing}`)

interface RecordedEvent {
  readonly type: number
  readonly timestamp: number
}

/** The events that a window recorded, and the last state of its page. */
interface Recording {
  readonly windowId: string
  readonly events: readonly RecordedEvent[]
  readonly segments: number
  readonly acknowledged: readonly { segmentId: number; status: number; objectKey: string }[]
  /** Segments that were sent while the page was unloaded. */
  readonly last: readonly number[]
  readonly faults: readonly string[]
  readonly shown: Shown
}

interface Shown {
  readonly text: string
  readonly values: readonly string[]
}

interface SentRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

describe.skipIf('missing' in browserFound)('a session recorded in a browser', () => {
  const settings = { sessionId: `session ${randomUUID()}/ü`, deviceId: randomUUID(), visitorId: randomUUID() }
  const complaints: string[] = []
  const requests: SentRequest[] = []
  let stack: Stack
  let pages: PageServer
  let browser: TestBrowser
  let shopper: Recording
  let onlooker: Recording

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startStack()
    pages = await servePages({ ...settings, ingestUrl: stack.ingestUrl, publicKey: stack.secrets.publicKey })
    browser = await startBrowser(browserFound.path)
    ;[shopper, onlooker] = await Promise.all([shop(await openPage()), lookOn(await openPage('/index.html?packed'))])
  })

  afterAll(async () => {
    await browser?.stop()
    await pages?.stop()
    await stack?.stop()
  })

  it('uploads across origins without an error in the browser', () => {
    expect(complaints).toEqual([])
    for (const recording of [shopper, onlooker]) {
      expect(recording.faults).toEqual([])
      expect(recording.last.length).toBeGreaterThan(0)
      expect(recording.acknowledged.length).toBeGreaterThan(0)
      for (const { status, objectKey } of recording.acknowledged) {
        expect(status).toBe(200)
        expect(objectKey).toMatch(/^replays\/.+\.jsonl\.gz$/)
      }
    }
    // The browser sends these headers and this method to another origin only after a preflight has allowed them.
    const uploads = requests.filter(({ headers }) => 'x-replay-metadata' in headers)
    expect(uploads.length).toBeGreaterThan(1)
    for (const { url, headers } of uploads) {
      expect(new URL(url).origin).toBe(stack.ingestUrl)
      expect(headers).toMatchObject({
        referer: `${pages.origin}/`,
        'content-encoding': 'gzip',
        'content-type': 'application/octet-stream',
        'x-service-public-key': stack.secrets.publicKey,
      })
    }
  })

  it('has the chunks of both windows, without gaps', async () => {
    const expected = shopper.segments + onlooker.segments
    const { chunks, nextCursor, gaps, missingFullSnapshots } = await until('all chunks are indexed', async () => {
      const replay = await get<Replay>('/replay?limit=100')
      return replay && replay.chunks.length >= expected ? replay : undefined
    })
    expect({ nextCursor, gaps, missingFullSnapshots }).toEqual({ nextCursor: null, gaps: [], missingFullSnapshots: [] })
    for (const { windowId, segments, events, acknowledged } of [shopper, onlooker]) {
      const own = chunks.filter(chunk => chunk.windowId === windowId)
      expect(own.map(chunk => Number(chunk.segmentId)).sort((a, b) => a - b)).toEqual([...Array(segments).keys()])
      expect(own.reduce((sum, chunk) => sum + chunk.eventCount, 0)).toBe(events.length)
      for (const { segmentId, objectKey } of acknowledged) {
        expect(own.find(chunk => Number(chunk.segmentId) === segmentId)?.objectKey).toBe(objectKey)
      }
    }
    expect(chunks).toHaveLength(expected)
  })

  it('returns the events as they were recorded, of one window and of both', async () => {
    for (const { windowId, events } of [shopper, onlooker]) {
      expect(await readEvents(`?window=${windowId}`)).toEqual(events)
    }
    const all = await readEvents('')
    expect(all).toHaveLength(shopper.events.length + onlooker.events.length)
    const times = all.map(({ timestamp }) => timestamp)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  it('has the identity and the device that the page sent', async () => {
    const session = await until('identity and device are stored', async () => {
      const read = await get<{ session: Session }>('')
      return read?.session.identity && read.session.devices.length > 0 ? read.session : undefined
    })
    expect(session).toMatchObject({
      id: settings.sessionId,
      identity: {
        identifier: 'ada@example.com',
        source: { type: 'custom', name: 'Shop' },
        name: 'Ada Лавлейс',
        email: 'ada@example.com',
        traits: { plan: 'gold', seats: 3 },
      },
      devices: [{ deviceId: settings.deviceId }],
    })
  })

  it.each(['shopper', 'onlooker'] as const)(
    'plays the window of the %s to the end in the Replayer of rrweb',
    async who => {
      const recording = { shopper, onlooker }[who]
      const events = await readEvents(`?window=${recording.windowId}`)
      const page = await openPage('/replay.html')
      const before = complaints.length
      const played = await page.evaluate(given => (globalThis as unknown as ReplayPage).playToTheEnd(given), events)
      await page.close()
      expect(complaints.slice(before)).toEqual([])
      expect(played).toEqual({ played: events.length, ...recording.shown })
    },
  )

  /** Opens a window and collects its errors and requests. */
  async function openPage(path = '/index.html'): Promise<Page> {
    const page = await browser.context.newPage()
    page.on('pageerror', error => complaints.push(`${error}`))
    page.on('crash', () => complaints.push('a page crashed'))
    page.on('console', message => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('request', sent => requests.push({ url: sent.url(), headers: sent.headers() }))
    await page.goto(`${pages.origin}${path}`)
    return page
  }

  /** Types, clicks, scrolls, signs in, opens another page and leaves. */
  async function shop(page: Page): Promise<Recording> {
    await page.locator('[name=name]').pressSequentially('Ada Лавлейс', { delay: 5 })
    await page.locator('[name=email]').pressSequentially('ada@example.com', { delay: 5 })
    await page.locator('[name=password]').pressSequentially('a secret', { delay: 5 })
    for (let i = 0; i < 12; i++) await page.locator('#add').click()
    await page.locator('#remove').click()
    await page.locator('button[type=submit]').click()
    await page.getByText('Good day, Ada').waitFor()
    await scroll(page)
    await page.getByText('To the checkout').click()
    await page.waitForURL('**/checkout.html')
    await page.locator('#note').pressSequentially('Ring twice,\nplease 🙂', { delay: 5 })
    await page.locator('#gift').check()
    await page.locator('#delivery').selectOption('fast')
    for (let i = 0; i < 8; i++) await page.locator('#add').click()
    await scroll(page)
    return leave(page)
  }

  /** Adds and removes things. The recorder of this window packs its events. */
  async function lookOn(page: Page): Promise<Recording> {
    for (let i = 0; i < 30; i++) await page.locator(i % 3 === 2 ? '#remove' : '#add').click()
    await scroll(page)
    return leave(page)
  }

  async function leave(page: Page): Promise<Recording> {
    const shown = await page.evaluate<Shown>(showing)
    await page.goto(`${pages.origin}/ended.html`)
    const kept: Record<string, string | undefined> = await page.evaluate('({ ...sessionStorage })')
    return {
      windowId: kept.windowId ?? '',
      events: parseLines(kept.events),
      segments: Number(kept.nextSegment),
      acknowledged: parseLines(kept.acknowledged),
      last: parseLines(kept.last),
      faults: parseLines(kept.faults),
      shown,
    }
  }

  async function get<T>(path: string): Promise<T | undefined> {
    const response = await request(path)
    return response.status === 200 ? ((await response.json()) as T) : undefined
  }

  async function readEvents(query: string): Promise<RecordedEvent[]> {
    const response = await request(`/replay/events${query}`)
    expect(response.status).toBe(200)
    return parseLines(await response.text())
  }

  function request(path: string): Promise<Response> {
    return fetch(`${stack.apiUrl}/v3/sessions/${encodeURIComponent(settings.sessionId)}${path}`, {
      headers: { authorization: `Bearer ${stack.secrets.sessionToken}` },
      signal: AbortSignal.timeout(30_000),
    })
  }
})

interface Replay {
  readonly chunks: readonly { windowId: string; segmentId: string; eventCount: number; objectKey: string }[]
  readonly nextCursor: string | null
  readonly gaps: readonly unknown[]
  readonly missingFullSnapshots: readonly string[]
}

interface Session {
  readonly id: string
  readonly identity: object | null
  readonly devices: readonly object[]
}

interface ReplayPage {
  playToTheEnd(events: readonly RecordedEvent[]): Promise<Shown & { played: number }>
}

async function scroll(page: Page): Promise<void> {
  for (const y of [600, 900, -700, 3000]) await page.mouse.wheel(0, y)
  await until('the page is scrolled', async () => (await page.evaluate<number>('scrollY')) > 1_000)
}

const showing = `({
  text: document.querySelector('main').textContent,
  values: [...document.querySelectorAll('input, textarea, select')].map(({ value }) => value),
})`

function parseLines<T>(text = ''): T[] {
  return text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as T]))
}
