import type { Command } from 'commander'
import { deliveriesAnswerSchema, deliverySchema, testedSchema } from '../../schemas/http/alerts/deliveries.ts'
import { type AlertsAnswer, alertsAnswerSchema } from '../../schemas/http/alerts/operations.ts'
import { type Trial, trialSchema } from '../../schemas/http/alerts/trial.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { addReplaceRules, addShowRules, knownRules, type RulesKind, rulesHelp } from '../reads/rules-commands.ts'
import { readRulesFile } from '../reads/rules-file.ts'
import { counted, printable, rowOf } from '../terminal.ts'

type Rule = AlertsAnswer['rules'][number]

const KIND: RulesKind<Rule, AlertsAnswer> = {
  name: 'alerts',
  path: '/v3/alerts',
  schema: alertsAnswerSchema,
  readBy: '"replace" reads',
  example: { command: 'alerts', file: 'alerts.json' },
  columns: ['RULE', 'CALLS', 'FOR'],
  widths: [28, 24, 80],
  cellsOf: rule => [rule.name, rule.receivers?.join(', ') ?? 'all', conditionsOf(rule)],
  // A receiver keeps its target, which is not shown.
  besides: ({ receivers }) => ({
    receivers: receivers.map(({ name, channel, disabled }) => ({ name, channel, ...(disabled && { disabled: true }) })),
  }),
  note: ({ receivers, failing = [] }) =>
    [
      ...(receivers.length === 0 ? ['no receiver: nothing is sent'] : []),
      ...receivers.map(({ name, channel, address, publicKey, disabled }) => {
        const key = publicKey === undefined ? '' : `, public key ${publicKey}`
        const state = disabled ? `, disabled: ${disabled.reason}` : ''
        return printable(`receiver ${name}: ${channel}, ${address}${key}${state}`)
      }),
      ...failing.map(({ rule, kind, since, reason }) =>
        printable(`rule ${rule} cannot measure ${kind} since ${since}: ${reason}`),
      ),
    ].join('\n'),
  effectOf: ({ receivers }) => {
    const made = receivers.flatMap(({ name, secret }) =>
      secret === undefined ? [] : [`secret of ${name}, which is not shown again: ${secret}`],
    )
    return ['events call receivers by them', ...made].join('\n')
  },
}

interface DeliveriesOptions {
  readonly finding?: string
  readonly receiver?: string
  readonly limit?: string
}

/** Adds `alerts` with `show`, `replace`, `test`, `deliveries` and `replay`. */
export function addAlerts(parent: Command, context: ReadCommandContext): void {
  const command = parent
    .command('alerts')
    .description('read, replace and test the receivers of alerts and the rules that call them')
  addShowRules(command, context, KIND)
  addReplaceRules(command, context, KIND)
  command
    .command('test')
    .description('send a test to a receiver, and show how it ended')
    .argument('<receiver>', 'name of the receiver')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', rulesHelp('alerts test on-call'))
    .action(async (receiver: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const tested = knownRules(await reader.post(`${KIND.path}/test`, { receiver }, testedSchema), KIND)
      const { result, status, reason, durationMs } = tested
      const words = [result, status, reason].filter(word => word !== undefined).join(', ')
      const line = options.json ? JSON.stringify(tested) : printable(`${words} (${durationMs} ms)`)
      if (result === 'delivered') return context.print(line)
      return context.exit(EXIT.failed, line)
    })
  addTry(command, context)
  addDeliveries(command, context)
}

function addTry(command: Command, context: ReadCommandContext): void {
  command
    .command('try')
    .description('state what rules would have called for in the last seven days, without keeping them')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the answers of the API, one a line')
    .addHelpText('after', rulesHelp('alerts try alerts.json'))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules } = await readRulesFile(file)
      for (const rule of rules) {
        const trial = knownRules(await reader.post(`${KIND.path}/try`, { rule }, trialSchema), KIND)
        if (options.json) context.print(JSON.stringify(trial))
        else for (const line of describeTrial(nameOf(rule), trial)) context.print(printable(line))
      }
    })
}

/** Returns how a rule of a file is called. The API has found it valid. */
const nameOf = (rule: unknown) => String((rule as { readonly name?: unknown }).name)

function describeTrial(name: string, { events, messages, calls, unknown }: Trial): string[] {
  const times = `would have called ${counted(events, 'time')} in seven days`
  const rest = events - calls.length
  return [
    events === 0
      ? `${name}: ${times}`
      : `${name}: ${times} (${counted(messages, 'message')} of Slack, Teams or e-mail):`,
    ...calls.map(({ at, kind, title, resolved }) => `  ${at}  ${kind}${resolved ? ' (ended)' : ''}  ${title}`),
    ...(rest > 0 ? [`  and ${rest} before`] : []),
    ...unknown.map(({ kind, reason }) => `  ${kind}: ${reason}`),
  ]
}

function addDeliveries(command: Command, context: ReadCommandContext): void {
  command
    .command('deliveries')
    .description('show the last attempts to send alerts, the latest first')
    .addOption(urlOption())
    .option('--finding <id>', 'only those about this finding')
    .option('--receiver <name>', 'only those to this receiver')
    .option('--limit <count>', 'how many attempts are shown, at most 1000')
    .option('--json', 'print the answer of the API')
    .addHelpText('after', rulesHelp('alerts deliveries --receiver on-call'))
    .action(async (options: ReadOptions & DeliveriesOptions) => {
      const reader = await connectReader(context, options)
      const { finding, receiver, limit } = options
      const query = new URLSearchParams({
        ...(finding !== undefined && { findingId: finding }),
        ...(receiver !== undefined && { receiver }),
        ...(limit !== undefined && { limit }),
      })
      const answer = knownRules(await reader.get(`${KIND.path}/deliveries?${query}`, deliveriesAnswerSchema), KIND)
      if (options.json) return context.print(JSON.stringify(answer))
      const widths = [24, 20, 10, 10, 40, 60, 60]
      context.print(rowOf(['AT', 'RECEIVER', 'RESULT', 'STATE', 'EVENTS', 'REASON', 'DELIVERY'], widths))
      for (const { at, receiverName, result, state, status, reason = '', events, deliveryId } of answer.attempts) {
        const types = [...new Set(events.map(({ type }) => type))].join(', ')
        const why = [status, reason].filter(Boolean).join(' ')
        context.print(rowOf([at, receiverName, result, state, types, why, deliveryId], widths))
      }
    })
  command
    .command('replay')
    .description('send a delivery again that was parked or has ended, or now if it waits')
    .argument('<delivery>', 'its id, as "alerts deliveries" shows it')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', rulesHelp('alerts replay evt_…_rcv_…'))
    .action(async (id: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const path = `${KIND.path}/deliveries/${encodeURIComponent(id)}/replay`
      const delivery = await reader.post(path, {}, deliverySchema)
      if (delivery === undefined)
        return context.exit(EXIT.failed, 'there is no such delivery, or it is not kept any more')
      const line = printable(`it is sent to ${delivery.receiverName} again now`)
      context.print(options.json ? JSON.stringify(delivery) : line)
    })
}

function conditionsOf({ kinds, surfaces, services, environments, types }: Rule): string {
  const alternatives = [kinds, surfaces, services, environments, types].map(values => values?.join(' or '))
  return alternatives.filter(values => values !== undefined).join('; ')
}
