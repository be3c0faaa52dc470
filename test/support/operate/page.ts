import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { delimiter, dirname } from 'node:path'
import { ROOT } from '../../../deploy/local/config.ts'

/** A page of docs/operate whose commands a test runs as an operator does. */
export interface OperatePage {
  /**
   * Runs the commands below a heading, in order. Throws if one ends with another code than 0 and `exitCode`, or if its output has
   * not the lines that the page shows. Returns the output.
   */
  run(heading: string, env?: Readonly<Record<string, string>>, exitCode?: number): Promise<string>
  /** Headings with commands that have not run. */
  left(): string[]
}

/** Returns a PATH with which commands find this one, this Node and what else is installed. */
export function pathWith(command: string): string {
  const directories = command.includes('/') ? [dirname(command)] : []
  return [...directories, dirname(process.execPath), process.env.PATH].join(delimiter)
}

/** Commands of a page, and the lines that follow them there. */
interface Block {
  readonly heading: string
  readonly commands: string
  /** Lines of the output, in which `…` matches any text. */
  readonly shown: readonly string[]
}

/** Time limit of the commands below one heading. */
const DEADLINE_MS = 90_000

/** Opens a page. `env` are the variables that the page tells its reader to set. */
export async function openPage(name: string, env: Readonly<Record<string, string>>): Promise<OperatePage> {
  const blocks = blocksOf(await readFile(`${ROOT}/docs/operate/${name}`, 'utf8'))
  const left = new Set(blocks.map(({ heading }) => heading))
  return {
    async run(heading, further = {}, exitCode = 0) {
      const found = blocks.filter(block => block.heading === heading)
      if (found.length === 0) throw new Error(`${name} has no commands below "${heading}"`)
      left.delete(heading)
      let output = ''
      for (const block of found) {
        const printed = await runCommands(block.commands, { ...env, ...further }, exitCode)
        const missing = missingLine(block.shown, printed)
        if (missing !== undefined) {
          throw new Error(`${name}, "${heading}": the output has no line "${missing}":\n${printed}`)
        }
        output += printed
      }
      return output
    },
    left: () => [...left],
  }
}

/** Returns the blocks of a page: commands are fenced as `sh`, and what they print, if it follows, as `text`. */
function blocksOf(page: string): Block[] {
  const blocks: { heading: string; commands: string; shown: string[] }[] = []
  let heading = ''
  let fence: string | undefined
  for (const line of page.split('\n')) {
    const marker = /^\s*```(\w*)$/.exec(line)
    if (marker) {
      fence = fence === undefined ? marker[1] : undefined
      if (fence === 'sh') blocks.push({ heading, commands: '', shown: [] })
      continue
    }
    const block = blocks.at(-1)
    if (fence === undefined) heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading
    else if (fence === 'sh' && block) block.commands += `${line}\n`
    else if (fence === 'text' && block) block.shown.push(line.trim())
  }
  return blocks
}

/** Returns the first of these lines that the output does not have after the lines before it. */
function missingLine(shown: readonly string[], output: string): string | undefined {
  const lines = output.split('\n').map(line => line.trim())
  let from = 0
  for (const line of shown) {
    const pattern = new RegExp(`^${line.split('…').map(escaped).join('.*')}$`)
    const at = lines.findIndex((printed, i) => i >= from && pattern.test(printed))
    if (at === -1) return line
    from = at + 1
  }
  return undefined
}

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Runs commands in a shell that ends at the first one that fails. Rejects with the output then, unless with this exit code. */
function runCommands(commands: string, env: Readonly<Record<string, string>>, exitCode: number): Promise<string> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: ROOT,
    env: { PATH: pathWith(''), HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const deadline = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'), DEADLINE_MS)
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', data => {
    stdout += data
  })
  child.stderr.on('data', data => {
    stderr += data
  })
  return new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0 || code === exitCode) resolve(stdout)
      else reject(new Error(`ended with ${code ?? signal}:\n${commands}\n${stdout}\n${stderr}`))
    })
  }).finally(() => clearTimeout(deadline))
}
