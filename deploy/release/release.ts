import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CHART, findHelm, NO_HELM } from '../kubernetes/render.ts'
import { headCommit, MANIFEST, ROOT } from './manifest.ts'
import { notesOf, versionedFiles } from './versions.ts'

/**
 * Entry point of `npm run release`: builds everything that a release consists of in release/ (CONTRIBUTING.md), and
 * publishes nothing. `--dry-run` builds what it can of any checkout; without it, the checkout has to be the tagged one.
 */
const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } })
const isDryRun = values['dry-run']
const out = join(ROOT, 'release')
const { name, version } = MANIFEST
const file = (end: string) => join(out, `${name}-${version}${end}`)

for (const { file: path, text, wanted } of versionedFiles()) {
  if (text !== wanted) fail(`${path} has another version than package.json: run "node deploy/release/versions.ts"`)
}
const commit = headCommit() ?? 'unknown'
if (!isDryRun && !isTagged()) fail(`the checkout is not exactly the commit with the tag v${version}: try --dry-run`)
const notes = readNotes()

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
writeFileSync(file('-notes.md'), `${notes}\n`)
run('npm', ['pack', '--silent', '--pack-destination', out])
run(process.execPath, [join(ROOT, 'deploy/supply-chain/sbom.ts'), file('.cdx.json')])
packageChart()
buildImage()

const files = globSync(['*.*', 'chart/*'], { cwd: out }).sort()
const digests = files.map(path => `${sha256(join(out, path))}  ${path}\n`)
writeFileSync(file('-SHA256SUMS'), digests.join(''))
for (const path of files) console.log(`${path.padEnd(32)} ${Math.ceil(statSync(join(out, path)).size / 1e3)} kB`)
console.log(`${name} ${version} of commit ${commit} is in ${out}; nothing was published`)

/** Returns the changes of this version. Those of a dry run may still be unreleased. */
function readNotes(): string {
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
  const found = notesOf(changelog, version) ?? (isDryRun ? notesOf(changelog, 'Unreleased') : undefined)
  return found ?? fail(`CHANGELOG.md has no changes of ${version}`)
}

function isTagged(): boolean {
  const tags = execFileSync('git', ['tag', '--points-at', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).split('\n')
  return tags.includes(`v${version}`) && !commit.endsWith('-dirty')
}

function packageChart(): void {
  const helm = findHelm()
  // Its file has the name that npm gives to the package.
  if (helm !== undefined) run(helm, ['package', CHART, '--destination', join(out, 'chart')])
  else leaveOut(`the chart: ${NO_HELM}`)
}

function buildImage(): void {
  if (spawnSync('docker', ['info'], { stdio: 'ignore' }).status !== 0) {
    leaveOut("the image: Docker's engine does not run")
    return
  }
  const tag = `${name}:${version}`
  const dockerfile = join(ROOT, 'deploy/docker/Dockerfile')
  run('docker', ['build', '-q', '-f', dockerfile, '--build-arg', `REVISION=${commit}`, '-t', tag, ROOT])
  run('docker', ['save', '-o', file('-image.tar'), tag])
}

function leaveOut(what: string): void {
  if (!isDryRun) fail(`a release needs ${what}`)
  console.log(`SKIPPED ${what}`)
}

function run(command: string, args: readonly string[]): void {
  console.log(`== ${[command, ...args].join(' ')}`)
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) fail(`${command} failed${error ? `: ${error.message}` : ''}`)
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

function fail(text: string): never {
  console.error(text)
  process.exit(1)
}
