import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { newTraceId, send, traceExport } from '../../support/console/staged-telemetry.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../support/receivers/webhook-receiver.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of alerts: missing ${browserFound.missing}`)

/** Most presses of a key to reach something. */
const PRESSES_MAX = 80

describe.skipIf('missing' in browserFound)('alerts in the console', () => {
  let stack: ConsoleStack
  let page: Page
  let receiver: WebhookReceiver

  beforeAll(async () => {
    if ('missing' in browserFound) return
    receiver = await startWebhookReceiver()
    stack = await startConsoleStack(browserFound.path)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
    await page.goto(stack.urlOf('settings/alerts'))
  })
  afterAll(async () => {
    await stack?.stop()
    await receiver?.stop()
  })

  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const field = (name: string) => page.getByRole('textbox', { name })
  const card = (name: string) =>
    page.getByRole('listitem').filter({ has: page.getByRole('heading', { level: 4, name, exact: true }) })
  const looksRight = async (name: string) => {
    expect(await violations(page)).toEqual([])
    await takePictures(page, name)
  }
  const hasFocus = (locator: Locator) => locator.evaluate(element => element === element.ownerDocument.activeElement)
  /** Moves the focus to an element, as a user without a pointer does. */
  const tabTo = async (locator: Locator) => {
    for (let i = 0; i < PRESSES_MAX; i++) {
      if (await hasFocus(locator)) return
      await page.keyboard.press('Tab')
    }
    throw new Error(`${locator} is not reached by Tab`)
  }
  const press = async (locator: Locator, key: 'Enter' | 'Space') => {
    await tabTo(locator)
    await page.keyboard.press(key)
  }
  const typeInto = async (locator: Locator, text: string) => {
    await tabTo(locator)
    await page.keyboard.press('Control+a')
    await page.keyboard.type(text)
  }
  const names = () => page.getByRole('list', { name: 'Rules' }).getByRole('heading', { level: 4 }).allTextContents()

  it('adds a receiver, sends it a test, makes a new secret, disables and enables it', async () => {
    await page.getByText('No one is called yet').waitFor()
    await looksRight('alerts-none')
    await page.getByText('Add a receiver', { exact: true }).click()
    await field('Name').fill('on-call')
    await field('URL').fill(receiver.url)
    await button('Add receiver').click()
    const first = await page.getByText(/^whsec_/).textContent()
    await looksRight('alerts-new-receiver')
    await button('I have kept it').click()
    await button('Send a test on-call').click()
    await page.getByText('The test was delivered').waitFor()
    expect(receiver.received.map(({ body }) => JSON.parse(body).type)).toEqual(['test'])
    await page.locator('summary', { hasText: 'Change on-call' }).click()
    await button('Make a new secret').click()
    const second = await page.getByText(/^whsec_/).textContent()
    expect(second).not.toBe(first)
    await button('I have kept it').click()
    const shown = page.getByRole('list', { name: 'Receivers' }).getByRole('listitem')
    await shown.getByRole('combobox', { name: 'It verifies messages with' }).selectOption('ed25519')
    await button('Make a new secret').click()
    await shown.getByText(/^whpk_/).waitFor()
    await button('Make a new key').waitFor()
    expect(await shown.getByRole('combobox', { name: 'It verifies messages with' }).inputValue()).toBe('ed25519')
    expect(await page.getByText(/^whsec_/).count()).toBe(0)
    await button('Leave these links out').click()
    await shown.getByText('Messages have no links that acknowledge').waitFor()
    await button('Disable on-call').click()
    await page.getByText(/^Disabled since .*: a member has disabled it/).waitFor()
    await looksRight('alerts-disabled-receiver')
    await button('Enable on-call').click()
    await page.getByText(/^Disabled since/).waitFor({ state: 'detached' })
  })

  it('makes a rule for a metric by keyboard alone, with faults at their fields', async () => {
    await press(page.getByRole('link', { name: 'Add a rule' }), 'Enter')
    await page.getByRole('heading', { level: 2, name: 'New rule' }).waitFor()
    await until('the name has the focus', () => hasFocus(field('Name')))
    await press(page.getByRole('checkbox', { name: 'A metric crosses a value' }), 'Space')
    await press(button('Save rule'), 'Enter')
    await page.getByText('Write something here.').first().waitFor()
    await until('the first fault has the focus', () => hasFocus(field('Name')))
    expect(await page.locator('[aria-invalid]').count()).toBe(3)
    await looksRight('alerts-rule-faults')
    await page.keyboard.type('Few orders')
    await typeInto(field('Expression'), 'sum(rate(orders[5m]))')
    await tabTo(page.getByRole('combobox', { name: 'It is' }))
    await page.keyboard.type('below')
    await typeInto(field('Value'), 'few')
    await page.getByText('"few" is not a number.').waitFor()
    await typeInto(field('Value'), '0.5')
    expect(await page.locator('[aria-invalid]').count()).toBe(0)
    await press(button('Save rule'), 'Enter')
    await card('Few orders').getByText('sum(rate(orders[5m])) is below 0.5 for 5 minutes').waitFor()
    await until('the focus is at the rule', () => hasFocus(page.getByRole('link', { name: 'Edit Few orders' })))
  })

  it('makes a rule for findings that spike by keyboard alone', async () => {
    await page.keyboard.press('Escape')
    await page.goto(stack.urlOf('settings/alerts?new=rule'))
    await field('Name').waitFor()
    await until('the name has the focus', () => hasFocus(field('Name')))
    await page.keyboard.type('Spikes of the shop')
    await press(page.getByRole('checkbox', { name: 'A finding spikes' }), 'Space')
    await typeInto(field('Times as often'), '3')
    await typeInto(field('Occurrences, at least'), '10')
    await typeInto(page.getByRole('combobox', { name: 'Environments' }), 'production')
    await page.keyboard.press('Enter')
    await page.keyboard.type('staging')
    await page.keyboard.press('Enter')
    await press(button('Remove staging'), 'Enter')
    await typeInto(page.getByRole('combobox', { name: 'Services' }), 'checkout')
    await tabTo(page.getByRole('radio', { name: 'every receiver' }))
    await page.keyboard.press('ArrowDown')
    await press(page.getByRole('checkbox', { name: 'on-call' }), 'Space')
    await typeInto(field('Minutes between messages'), '30')
    await press(page.getByRole('checkbox', { name: 'Quiet hours' }), 'Space')
    await looksRight('alerts-rule-form')
    await press(button('Save rule'), 'Enter')
    const saved = card('Spikes of the shop')
    await saved.getByText('3 times as often as the busiest five minutes of that hour, and at least 10 times').waitFor()
    await saved.getByText('calls on-call').waitFor()
    const zone = await page.evaluate(() => new Intl.DateTimeFormat().resolvedOptions().timeZone)
    await saved
      .getByText(
        `Only for service checkout, environment production. At most one message in 30 minutes. Quiet from 22:00 to 07:00 (${zone}).`,
      )
      .waitFor()
    await looksRight('alerts-rules')
  })

  it('copies, moves and deletes rules', async () => {
    const before = await names()
    await page.getByRole('link', { name: 'Copy Few orders' }).click()
    expect(await field('Name').inputValue()).toBe('Few orders, copy')
    await button('Save rule').click()
    await card('Few orders, copy').waitFor()
    expect(await names()).toEqual([...before, 'Few orders, copy'])
    await press(button('Up Few orders, copy'), 'Enter')
    const moved = before.with(-1, 'Few orders, copy').concat(before.slice(-1))
    await until('it is moved', async () => (await names()).join() === moved.join())
    await until('its button has the focus', () => hasFocus(button('Up Few orders, copy')))
    await button('Delete Few orders, copy').click()
    await page.getByRole('dialog').getByRole('textbox').fill('delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await card('Few orders, copy').waitFor({ state: 'detached' })
    expect(await names()).toEqual(before)
  })

  it('names who has changed the rules meanwhile, and keeps what was typed', async () => {
    const other = await stack.openPage()
    await page.goto(stack.urlOf('settings/alerts?rule=Few+orders'))
    await field('Name').fill('Too few orders')
    await other.goto(stack.urlOf('settings/alerts?rule=Few+orders'))
    await other.getByRole('textbox', { name: 'Value' }).fill('0.7')
    await other.getByRole('button', { name: 'Save rule' }).click()
    await other.getByText('is below 0.7').waitFor()
    await other.close()
    await button('Save rule').click()
    await page
      .getByRole('alert')
      .getByText(/user_local changed receivers or rules .*The form keeps what you typed/)
      .waitFor()
    await page.getByText('This rule was changed meanwhile. Saving replaces that change.').waitFor()
    expect(await field('Name').inputValue()).toBe('Too few orders')
    await looksRight('alerts-rule-conflict')
    await button('Save rule').click()
    await card('Too few orders').getByText('is below 0.5').waitFor()
    expect(await names()).not.toContain('Few orders')
  })

  /** Sends an exception of a type that was not seen before. */
  const fail = async (type: string) => {
    const exception = { type, message: 'not seen before', stack: '' }
    const failed = { id: 'a'.repeat(16), name: 'GET /', service: 'web', startMs: 0, ms: 1, isError: true, exception }
    await send(stack.credentials, 'traces', traceExport(newTraceId(), Date.now(), [failed]))
  }
  const untilListed = (shown: RegExp) =>
    until(`${shown} is listed`, async () => {
      await page.goto(stack.urlOf('settings/alerts'))
      const sent = page.getByRole('list', { name: 'Deliveries' }).getByRole('listitem').filter({ hasText: shown })
      return sent
        .first()
        .waitFor({ timeout: 1_000 })
        .then(
          () => true,
          () => false,
        )
    })

  it('shows what was sent on the finding and among the deliveries, with its body', async () => {
    await fail('UnseenError')
    await untilListed(/^delivered ?A new finding/)
    await looksRight('alerts')
    await page.getByRole('link', { name: 'A new finding' }).click()
    await page.getByRole('heading', { level: 2, name: 'Delivery' }).waitFor()
    await page.getByText(/^Attempt 1 was accepted: status 204, after/).waitFor()
    const body = JSON.parse((await page.locator('pre').textContent()) ?? '')
    const sent = receiver.received.map(webhook => JSON.parse(webhook.body))
    expect(sent.find(({ data }) => data.id === body.data.id)).toEqual(body)
    expect(await button('Send again').count()).toBe(0)
    await looksRight('alerts-delivery')
    await page.getByRole('link', { name: 'Finding' }).last().click()
    await page.getByRole('heading', { level: 1, name: 'UnseenError' }).waitFor()
    const list = page.getByRole('list', { name: 'Sent to' })
    await list.getByText('by New and returning findings').waitFor()
    await until('all of it is read', async () => (await page.getByText(/^Reading/).count()) === 0)
    await looksRight('alerts-of-finding')
    await list.getByRole('link', { name: 'on-call' }).click()
    await page.getByRole('heading', { level: 2, name: 'Delivery' }).waitFor()
  })

  it('sends a delivery again that the receiver has not accepted', async () => {
    receiver.answers.set('/', 503)
    await fail('UndeliveredError')
    // The second attempt is made after five seconds, the third after five minutes.
    await untilListed(/^waiting ?A new finding.*Attempt 2 was not accepted: the receiver answered 503/)
    await page.getByRole('combobox', { name: 'State' }).selectOption('delivered')
    await page.getByRole('link', { name: 'A new finding' }).first().waitFor()
    expect(await page.getByText(/^Attempt 2/).count()).toBe(0)
    await page.getByRole('combobox', { name: 'State' }).selectOption('waiting')
    await page.getByText(/^Attempt 2/).waitFor()
    await looksRight('alerts-waiting')
    await press(page.getByRole('link', { name: 'A new finding' }).first(), 'Enter')
    await page.getByText(/^Attempt 2 was not accepted/).waitFor()
    await looksRight('alerts-delivery-waiting')
    receiver.answers.delete('/')
    await press(button('Send now'), 'Enter')
    await page.getByText(/^Attempt 3 was accepted/).waitFor()
    await button('Send now').waitFor({ state: 'detached' })
  })

  it('tries a rule on the last seven days before it is kept', async () => {
    await page.goto(stack.urlOf('settings/alerts?new=rule'))
    await field('Name').waitFor()
    await until('the name has the focus', () => hasFocus(field('Name')))
    await page.keyboard.type('Web')
    await press(page.getByRole('checkbox', { name: 'A new finding' }), 'Space')
    await press(page.getByRole('checkbox', { name: 'A comment' }), 'Space')
    await typeInto(page.getByRole('combobox', { name: 'Types' }), 'UnseenError')
    await press(button('Try on the last seven days'), 'Enter')
    await page.getByText('It would have called once in the last seven days.').waitFor()
    const calls = page.getByRole('list', { name: 'Calls' }).getByRole('listitem')
    expect(await calls.count()).toBe(1)
    await calls.getByRole('link', { name: /UnseenError/ }).waitFor()
    await looksRight('alerts-trial')
    await typeInto(page.getByRole('combobox', { name: 'Types' }), 'NoError')
    await page.getByText('The rule was changed since then.').waitFor()
    await press(button('Try on the last seven days'), 'Enter')
    await page.getByText('It would not have called in the last seven days.').waitFor()
    await press(page.getByRole('checkbox', { name: 'A new finding' }), 'Space')
    await press(page.getByRole('checkbox', { name: 'A comment' }), 'Space')
    await press(page.getByRole('checkbox', { name: 'A metric crosses a value' }), 'Space')
    await typeInto(field('Expression'), 'sum(rate(')
    await typeInto(field('Value'), '1')
    await press(button('Try on the last seven days'), 'Enter')
    await page.getByText(/^It is invalid: /).waitFor()
    expect(await field('Expression').getAttribute('aria-invalid')).toBe('true')
    await looksRight('alerts-trial-fault')
    await press(button('Cancel'), 'Enter')
    await page.getByRole('heading', { level: 3, name: 'Rules' }).waitFor()
    expect(await names()).not.toContain('Web')
  })

  it('removes a receiver, and the rules that call no other', async () => {
    await page.goto(stack.urlOf('settings/alerts'))
    await button('Remove on-call').click()
    await page.getByRole('dialog').getByRole('textbox').fill('on-call')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No one is called yet').waitFor()
    expect(await names()).not.toContain('Spikes of the shop')
    expect(stack.complaints.filter(text => !/40[09] \(/.test(text))).toEqual([])
  })
})
