import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Runs the programs beside it whose toolchains are there, and writes `../<language>.json` of what they recorded and of
 * `pairs.txt`, where the verdicts are. Without arguments it runs all. It needs root, for the folders /srv/shop and /home/deploy.
 */
const PROGRAMS = import.meta.dirname
const FOLDERS = ['/srv/shop', '/home/deploy']
const TOOLS: Readonly<Record<string, readonly string[]>> = {
  bundles: ['npm', 'chromium', 'firefox-esr'],
  go: ['go'],
  java: ['javac', 'java'],
  node: ['node', 'npm'],
  php: ['php'],
  python: ['/usr/bin/python3'],
  ruby: ['ruby'],
  rust: ['rustc'],
}
/** Texts that must not be in the data: they are of the machine where it was recorded. */
const PRIVATE = /\/root\/|\/work\/|\/tmp\/|registry\.|crates\.io/
const ORIGIN = /http:\/\/127\.0\.0\.1:\d{4,5}(?=\/)/g

interface Exception {
  readonly type: string
  readonly message: string
  readonly stacktrace: string
}

const languages = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(TOOLS)
for (const language of languages) {
  const missing = (TOOLS[language] ?? []).filter(tool => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0)
  if (missing.length > 0) say(`skipped ${language}: ${missing.join(' and ')} missing`)
  else record(language)
}

function record(language: string): void {
  const exceptions = new Map<string, Exception>()
  for (const version of [1, 2]) {
    for (const line of run(language, version)
      .split('\n')
      .filter(text => text.startsWith('{'))) {
      const { scenario, stacktrace = '', ...exception } = JSON.parse(line.replace(ORIGIN, 'https://shop.example'))
      exceptions.set(version === 1 ? scenario : `2:${scenario}`, { ...exception, stacktrace })
    }
  }
  const pairs = readFileSync(join(PROGRAMS, language, 'pairs.txt'), 'utf8')
    .trim()
    .split('\n')
  const recorded = pairs.map(line => {
    const [verdict, label, a = '', b = '', disputed] = line.split(' | ')
    const of = (name: string) => exceptions.get(name) ?? fail(`${language}: no exception was recorded of ${name}`)
    return { label, language, same: verdict === 'same', ...(disputed ? { disputed } : {}), a: of(a), b: of(b) }
  })
  const text = `${JSON.stringify(recorded, null, 2)}\n`
  const found = PRIVATE.exec(text)
  if (found) fail(`${language}: ${text.slice(found.index - 60, found.index + 60)}`)
  writeFileSync(join(PROGRAMS, '..', `${language}.json`), text)
  say(`recorded ${language}: ${pairs.length} pairs`)
}

/** Runs a version of the sources. Lines that begin with `//2 ` or `#2 ` are only in the second. */
function run(language: string, version: number): string {
  const used = FOLDERS.filter(existsSync)
  if (used.length > 0) fail(`${used.join(' and ')} must not exist`)
  try {
    cpSync(join(PROGRAMS, language), '/srv/shop', { recursive: true })
    mkdirSync('/home/deploy')
    for (const file of readdirSync('/srv/shop', { recursive: true, encoding: 'utf8' }).filter(name =>
      /\.\w+$/.test(name),
    )) {
      const path = join('/srv/shop', file)
      const source = readFileSync(path, 'utf8')
      const edited = source.replace(/^( *|\t*)(?:\/\/|#)2 ?(.*\n)/gm, version === 1 ? '' : '$1$2')
      if (edited !== source) writeFileSync(path, edited)
    }
    const env = { ...process.env, PROGRAMS }
    const command = ['/srv/shop/run.sh', String(version)]
    const ran = spawnSync('sh', command, {
      env,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (ran.status !== 0) fail(`${language}: run.sh ends with ${ran.status}`)
    return ran.stdout
  } finally {
    for (const folder of FOLDERS) spawnSync('chmod', ['-R', 'u+w', folder])
    for (const folder of FOLDERS) rmSync(folder, { recursive: true, force: true })
  }
}

function fail(reason: string): never {
  throw new Error(reason)
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
