import type { Command } from 'commander'
import {
  type FindingValues,
  findingValuesSchema,
  type ListedOccurrence,
  occurrencesPageSchema,
} from '../../schemas/http/findings/occurrences.ts'
import { findingAnswerSchema, findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { counted, parsedBy, printable } from '../terminal.ts'

const FINDING_HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token', [EXIT.notFound]: 'there is no such finding' })}

Example:
  $ npm run cli -- finding fnd_4g6peb7eom2yodowmzpd5xfhbe`

const OCCURRENCES = 10

/** Adds `finding`, which shows whom a finding has hit, where, and its last occurrences. */
export function addFinding(parent: Command, context: ReadCommandContext): void {
  const { print, exit } = context
  parent
    .command('finding')
    .description('show a finding: whom it has hit, where, and its last occurrences')
    .argument('<id>', 'the id of the finding', parsedBy(findingIdSchema))
    .addOption(urlOption())
    .option('--json', 'print the answers of the API')
    .addHelpText('after', FINDING_HELP)
    .action(async (id: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const path = `/v3/findings/${id}`
      const answer = await reader.get(path, findingAnswerSchema)
      const values = await reader.get(`${path}/values`, findingValuesSchema)
      const page = await reader.get(`${path}/occurrences?limit=${OCCURRENCES}`, occurrencesPageSchema)
      if (answer === undefined || values === undefined || page === undefined) {
        return exit(EXIT.notFound, `there is no finding ${id}, or it is no longer retained`)
      }
      const { finding } = answer
      if (options.json) return print(JSON.stringify({ finding, values, occurrences: page.occurrences }))
      const { title, type, message, status, serviceName, topFrame } = finding
      if (title !== undefined) print(printable(title))
      print(printable(message === '' ? type : `${type}: ${message.split('\n', 1)[0]}`))
      if (topFrame !== undefined)
        print(printable(`  ${topFrame.function || 'outside of functions'} in ${topFrame.file}:${topFrame.line}`))
      print(printable(`${status}, ${counted(finding.occurrenceCount, 'occurrence')} in ${serviceName || 'no service'}`))
      print(`first occurred ${finding.firstSeenAt}, received ${finding.firstReceivedAt}`)
      print(`last occurred  ${finding.lastSeenAt}, received ${finding.lastReceivedAt}`)
      for (const line of describeValues(values)) print(line)
      print(`last ${counted(page.occurrences.length, 'occurrence')}:`)
      for (const occurrence of page.occurrences) print(describeOccurrence(occurrence))
    })
}

const KINDS = ['versions', 'browsers', 'systems', 'routes', 'environments', 'hosts'] as const

/** Returns the lines of whom a finding has hit, and where. */
function describeValues(values: FindingValues): string[] {
  const { people, sessionCount, anonymousSessionCount, examinedCount, occurrenceCount } = values
  const top = people.top?.map(({ identifier, occurrenceCount: own }) => `${identifier} ${own}`) ?? []
  const shares = KINDS.map(kind => {
    const shown = values[kind].values.map(({ value, share }) => `${value} ${(share * 100).toFixed(1)} %`)
    return shown.length === 0 ? '' : `${`${kind}:`.padEnd(14)}${shown.join(', ')}`
  })
  return [
    `${people.identifiedCount} people, ${counted(sessionCount, 'session')}, ${anonymousSessionCount} of them anonymous`,
    top.length === 0 ? '' : `people:       ${top.join(', ')}`,
    ...shares,
    examinedCount < occurrenceCount ? `of the newest ${counted(examinedCount, 'occurrence')}` : '',
  ]
    .filter(line => line !== '')
    .map(printable)
}

function describeOccurrence(occurrence: ListedOccurrence): string {
  const { occurredAt, serviceVersion, person, sessionId, traceId, message } = occurrence
  const parts = [occurredAt, serviceVersion, person, sessionId && `session ${sessionId}`, traceId && `trace ${traceId}`]
  return printable(`  ${parts.filter(Boolean).join('  ')}  ${message.split('\n', 1)[0]}`)
}
