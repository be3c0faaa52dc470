import type { Command } from 'commander'
import type { Adopted } from '../../shared/installation/adopt-installation.ts'
import type { DoctorCommandContext } from '../command-context.ts'
import { adoptStores } from '../doctor/adopt-stores.ts'
import { type NamedFinding, type Result, runChecks } from '../doctor/check.ts'
import { checksOf } from '../doctor/checks.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { counted, printList } from '../terminal.ts'

const HELP = `
Examines the stores, their versions, settings and clocks, the queues, the directory and its backups, with the settings of the
workers. Each line begins with ✓, with ! for a warning, which can wait until tomorrow, or with ✗ for a fault. A store that does
not answer is a fault, and the others are examined nevertheless. It writes one object to the bucket and removes it, and changes
nothing else.

With --adopt it makes the stores those of one installation instead, after a move or a restore that has not brought their ids
along: it writes the id of the directory into the others, and shows each id before and after. Use it only when all addresses are
right: processes that were not ready for it work within a second.

${exitCodesHelp({
  [EXIT.done]: 'there is neither a warning nor a fault',
  [EXIT.failed]: 'the installation could not be examined',
  [EXIT.warned]: 'there are warnings',
  [EXIT.faulty]: 'there are faults',
})}

Examples:
  $ npm run cli -- doctor
  $ npm run cli -- doctor --adopt`

const MARKS: Readonly<Record<Result, string>> = { ok: '✓', warning: '!', fault: '✗' }

/** Adds `doctor`, which examines an installation. */
export function addDoctor(parent: Command, { withExamined, print, exit }: DoctorCommandContext): void {
  parent
    .command('doctor')
    .description('examine the installation')
    .option('--json', 'print each finding as a line of JSON')
    .option('--adopt', 'write the id of the installation into all stores')
    .addHelpText('after', HELP)
    .action(({ json, adopt }: { json?: boolean; adopt?: boolean }) =>
      withExamined(async examined => {
        if (adopt) return printList({ print, json }, ADOPTED, await adoptStores(examined))
        const findings = await runChecks(checksOf(examined))
        const columns = { ' ': 1, CHECK: 22, FINDING: 0 }
        const cells = ({ result, check, text }: NamedFinding) => [MARKS[result], check, text]
        await printList({ print, json }, { columns, cells, shown: finding => finding }, findings)
        const [faults, warnings] = [count(findings, 'fault'), count(findings, 'warning')]
        if (!json) print(`\n${counted(faults, 'fault')}, ${counted(warnings, 'warning')}`)
        if (faults > 0) exit(EXIT.faulty)
        else if (warnings > 0) exit(EXIT.warned)
      }),
    )
}

const ADOPTED = {
  columns: { STORE: 12, BEFORE: 28, AFTER: 28 },
  cells: ({ store, before = 'none', after }: Adopted) => [store, before, after],
  shown: (adopted: Adopted) => adopted,
}

function count(findings: readonly NamedFinding[], result: Result): number {
  return findings.filter(finding => finding.result === result).length
}
