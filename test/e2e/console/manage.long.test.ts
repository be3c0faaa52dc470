import type { Locator, Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { failedOrder, metricExport, newTraceId, send, traceExport } from '../../support/console/staged-telemetry.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the settings: missing ${browserFound.missing}`)

describe.skipIf('missing' in browserFound)('the console as a tool of management', () => {
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  })
  afterAll(() => stack?.stop())

  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const openPart = async (name: string) => {
    await page.getByRole('navigation', { name: 'Parts of the settings' }).getByRole('link', { name }).click()
    await page.getByRole('heading', { level: 2, name: new RegExp(`^${name}`) }).waitFor()
  }
  /** Confirms in the dialog that is open, after a word that is not the right one. */
  const confirm = async (word: string, label: string) => {
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox').fill(word.slice(1))
    expect(await dialog.getByRole('button', { name: label, exact: true }).isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill(word)
    await dialog.getByRole('button', { name: label, exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
  }
  const looksRight = async (name: string) => {
    expect(await violations(page)).toEqual([])
    await takePictures(page, name)
  }
  /** Loads a page again until it shows something that is being stored. */
  const untilShown = (path: string, shown: Locator) =>
    until(`${path} shows it`, async () => {
      await page.goto(stack.urlOf(path))
      return shown
        .first()
        .waitFor({ timeout: 1_000 })
        .then(
          () => true,
          () => false,
        )
    })
  const drainStatus = async (publicKey: string) =>
    (
      await fetch(`${stack.credentials.baseUrl}/drain/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-service-public-key': publicKey },
        body: JSON.stringify(traceExport(newTraceId(), Date.now(), failedOrder('session-1'))),
      })
    ).status

  it('creates a surface and a key that works, changes its quotas, revokes it, and deletes the surface', async () => {
    await page.keyboard.press('g')
    await page.keyboard.press(',')
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
    await page.getByRole('textbox', { name: 'Name of a new surface' }).fill('Shop')
    await button('Create surface').click()
    const key = (await page.getByText(/^pk_\w+$/).textContent()) ?? ''
    expect(new URL(page.url()).searchParams.get('surface')).toMatch(/^srf_/)
    await page.getByText('not used in 62 days').waitFor()
    await until('the key works', async () => (await drainStatus(key)) === 200)
    await looksRight('settings-new-surface')
    await until('its use is shown', async () => {
      await page.reload()
      await page.getByText(key).waitFor()
      return (await page.getByText(/^last used .* requests? today$/).count()) === 1
    })

    await page.getByRole('combobox', { name: 'Kind of a new key' }).selectOption('secret')
    await page.getByRole('textbox', { name: 'Name, if you like' }).fill('Builds')
    await button('Create key').click()
    await page.getByText('This is shown once').waitFor()
    const secret = (await page.locator('code.secret').textContent()) ?? ''
    await looksRight('settings-new-key')
    await button('I have kept it').click()
    expect(await page.getByText(secret).count()).toBe(0)
    await button(/^Revoke key sk_/).click()
    await confirm('revoke', 'Revoke')
    await page.getByText(/^revoked/).waitFor()

    await page.getByText('Change quotas and origins').click()
    await page.getByRole('spinbutton', { name: 'Requests a second' }).fill('7')
    await page.getByRole('textbox', { name: 'Allowed origins' }).fill('https://shop.example')
    await button('Change key').click()
    await page.getByText('Requests a second: 7. Origins: https://shop.example').waitFor()

    await button(/^Revoke key pk_/).click()
    await looksRight('settings-confirm')
    await confirm('revoke', 'Revoke')
    await page
      .getByText(/^revoked/)
      .nth(1)
      .waitFor()
    await until('the key is refused', async () => (await drainStatus(key)) === 401)

    await button('Delete Shop').click()
    await confirm('Shop', 'Delete')
    await button('Show keys of Shop').waitFor({ state: 'detached' })
    await looksRight('settings-surfaces')
  })

  it('creates an API key that is shown once, and revokes it', async () => {
    await openPart('API keys')
    await page.getByText('Create an API key').click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Terraform')
    await page.getByRole('checkbox', { name: /org:surfaces:read/ }).check()
    await looksRight('settings-api-key-form')
    await button('Create API key').click()
    const secret = (await page.locator('code.secret').textContent()) ?? ''
    const list = () =>
      fetch(`${stack.credentials.baseUrl}/v3/surfaces`, { headers: { authorization: `Bearer ${secret}` } })
    expect((await list()).status).toBe(200)
    await button('I have kept it').click()
    await button('Revoke API key Terraform').click()
    await confirm('Terraform', 'Revoke')
    await page.getByText(/^revoked/).waitFor()
    await until('the key is refused', async () => (await list()).status === 401)
    await looksRight('settings-api-keys')
  })

  it('invites a member, changes what the member may do, and removes the member', async () => {
    await openPart('Members')
    await page.getByText('Invite a member').click()
    await page.getByRole('textbox', { name: 'Identity' }).fill('user_ben')
    await page.getByRole('textbox', { name: 'Name' }).fill('Ben')
    const invitation = page.locator('form').filter({ has: button('Invite') })
    await invitation.getByRole('checkbox', { name: /org:findings:read/ }).check()
    await button('Invite').click()
    const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Ben' }) })
    await card.getByText('findings:read', { exact: true }).first().waitFor()
    await card.getByText('Change permissions of Ben').click()
    await card.getByRole('checkbox', { name: /org:sessions:read/ }).check()
    await card.getByRole('button', { name: 'Change permissions' }).click()
    await card.locator('.tags').getByText('sessions:read').waitFor()
    await looksRight('settings-members')
    await button('Remove Ben').click()
    await confirm('user_ben', 'Remove')
    await card.waitFor({ state: 'detached' })
  })

  it('shows retention, usage and who has changed what', async () => {
    await openPart('Retention')
    await page.getByRole('row', { name: /Dead letters 30 days/ }).waitFor()
    await looksRight('settings-retention')
    await openPart('Changes')
    await page.getByText('member.removed').waitFor()
    await page.getByText('surface.deleted').waitFor()
    await looksRight('settings-changes')
    await until('the usage is counted', async () => {
      await openPart('Usage')
      const isCounted = (await page.getByRole('row', { name: /traces/ }).count()) > 0
      if (!isCounted) await page.reload()
      return isCounted
    })
    await looksRight('settings-usage')
  })

  it('shows a dead letter with its reason and its body, replays it and purges it', async () => {
    const { baseUrl, publicKey } = stack.credentials
    await send({ baseUrl, publicKey }, 'traces', { resourceSpans: 'not a list' })
    await untilShown('pipeline', page.locator('a[data-row]'))
    await page.getByText('All queues and watermarks').first().click()
    await page.getByRole('heading', { name: 'Not stored in the last 24 hours' }).waitFor()
    await page.getByRole('row', { name: /^traces \d+ –/ }).waitFor()
    await looksRight('pipeline-letters')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: /Dead letter/ }).waitFor()
    expect(await page.getByRole('textbox', { name: 'Text of the body' }).inputValue()).toBe(
      `{"resourceSpans":"not a list"}`,
    )
    await looksRight('dead-letter')
    await button('Store again this dead letter').click()
    await confirm('store', 'Store again')
    await page.getByText('1 dead letter replayed').waitFor()
    await until('it was refused again', async () => {
      await page.reload()
      await page.getByRole('heading', { level: 2, name: 'Attempts' }).waitFor()
      return (await page.locator('.entries .tag.bad').count()) === 2
    })
    await button('Purge this dead letter').click()
    await confirm('purge', 'Purge')
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    await page.goto(stack.urlOf('pipeline'))
    await page.getByRole('heading', { name: 'No dead letters' }).waitFor()
  })

  it('draws a metric by label with its gaps, has its values in tables, and all choices in the address', async () => {
    await page.goto(stack.urlOf('metrics?from=now-1h'))
    await page.getByRole('heading', { name: 'No metrics yet' }).waitFor()
    const { baseUrl, publicKey } = stack.credentials
    await send({ baseUrl, publicKey }, 'metrics', metricExport('queue.wait', Date.now(), 45))
    await untilShown('metrics?from=now-1h', page.getByRole('link', { name: /queue.wait/ }))
    await looksRight('metrics')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('img', { name: /^1 line with values/ }).waitFor()
    await page.getByRole('combobox', { name: 'A line for each' }).selectOption('http.route')
    await page.getByRole('combobox', { name: 'Step' }).selectOption('60')
    await page.getByRole('combobox', { name: 'Show' }).selectOption('max')
    await page.getByRole('img', { name: /^2 lines with values from ≈ 9 s to ≈ 21 s/ }).waitFor()
    expect(new URL(page.url()).search).toBe('?from=now-1h&by=http.route&step=60&aggregation=max')
    // There are 60 or 61 steps, and 30 of them have a point.
    const gaps = await page
      .getByRole('row', { name: /http.route=.cart/ })
      .getByRole('cell')
      .last()
      .textContent()
    expect(['30', '31']).toContain(gaps)
    await looksRight('metric')
    await page.getByText('Table of all values').click()
    await page.getByRole('columnheader', { name: 'http.route=/orders' }).waitFor()
    await page.getByRole('searchbox', { name: 'Only with labels' }).fill('http.route=/cart')
    await page.getByRole('img', { name: /^1 line with values/ }).waitFor()
    await page.reload()
    await page.getByRole('img', { name: /^1 line with values/ }).waitFor()
    await page.getByRole('searchbox', { name: 'Only with labels' }).fill('http.route=/none')
    await page.getByRole('heading', { name: /Nothing is known|Not found/ }).waitFor()
    await takePictures(page, 'metric-none')
  })

  /** Pages that read something, by the name of their pictures. */
  const PAGES = {
    findings: 'findings',
    finding: `findings/fnd_${'a'.repeat(26)}`,
    traces: 'traces',
    trace: `traces/${newTraceId()}`,
    logs: 'logs',
    metrics: 'metrics',
    metric: 'metrics/queue.wait',
    sessions: 'sessions',
    session: 'sessions/session-1',
    releases: 'releases',
    release: 'releases/rel_1',
    pipeline: 'pipeline',
    settings: 'settings',
    usage: 'settings/usage',
  }

  it.each(Object.entries(PAGES))(
    'states on the page "%s" that it loads, and that the stores are unavailable',
    async (name, path) => {
      const body = JSON.stringify({ code: 'INGEST_INFRA_UNAVAILABLE', message: 'stored data is unavailable' })
      let isLoading = true
      const waiting: Route[] = []
      const refuse = (route: Route) => route.fulfill({ status: 503, contentType: 'application/json', body })
      await page.route('**/v3/**', route => (isLoading ? void waiting.push(route) : refuse(route)))
      await page.goto(stack.urlOf(path))
      await page
        .getByText(/^Reading .+…/)
        .first()
        .waitFor()
      if (name === 'findings') await looksRight('findings-loading')
      isLoading = false
      await Promise.all(waiting.map(refuse))
      await page.getByRole('alert').first().getByText('Stored data cannot be read at the moment').waitFor()
      await looksRight(`unavailable-${name}`)
      await page.unroute('**/v3/**')
      // Pages recover by themselves, as all of them read in the same way.
      if (name !== 'findings') return
      await page.getByText('Stored data cannot be read at the moment').first().waitFor({ state: 'detached' })
    },
  )

  it('states that too much is read at once, and reads again later', async () => {
    const body = JSON.stringify({ code: 'RATE_LIMITED', message: 'too many reads of this workspace are in progress' })
    await page.route('**/v3/findings?**', route =>
      route.fulfill({ status: 429, contentType: 'application/json', body }),
    )
    await page.goto(stack.urlOf('findings'))
    await page.getByRole('alert').getByText('Too much at once').waitFor()
    await looksRight('findings-too-much')
    await page.unroute('**/v3/findings?**')
    await page.getByText('on this page').waitFor()
  })

  it('states what the user is not permitted to do and to see', async () => {
    await page.goto(stack.urlOf('settings/members'))
    await page.getByText('Change permissions').first().click()
    for (const permission of [/org:surfaces:write/, /org:workspace_auth:write/]) {
      await page.locator('.cards').getByRole('checkbox', { name: permission }).uncheck()
    }
    await page.locator('.cards').getByRole('button', { name: 'Change permissions' }).click()
    await page.locator('.cards .tags').waitFor()
    await openPart('Surfaces')
    await page.getByRole('textbox', { name: 'Name of a new surface' }).fill('Another')
    await button('Create surface').click()
    await page.getByText('You are not permitted to do this').waitFor()
    await looksRight('settings-not-permitted')
    await openPart('API keys')
    await page.getByRole('heading', { name: 'You may not see this' }).waitFor()
    await looksRight('settings-not-permitted-to-see')
  })
})
