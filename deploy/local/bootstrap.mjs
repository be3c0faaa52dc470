import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Runs `npm start`, `npm test` and `npm run bench` on a fresh machine that has only Node 20 and npm. Installs the
 * dependencies, finds Node 22 and Redis or installs them, then runs the command. Plain JavaScript without dependencies.
 * `npx penstock start` runs it from a package, whose dependencies npm has installed.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const IS_PACKAGE = !existsSync(join(ROOT, 'package-lock.json'))
const IN_TREE = join(ROOT, 'node_modules/.bin/node')
const { env } = process
const USAGE = 'usage: node deploy/local/bootstrap.mjs start|test|compose|bench|package|release|console:link [arguments]'
/** Node runs TypeScript files from 22.18 and 23.6 on, and uWebSockets.js has binaries up to Node 23. */
const isUsableNode = version => /^v?(22\.(1[89]|[2-9]\d)|23\.([6-9]|[1-9]\d))\./.test(version)

const isTerminal = process.stdout.isTTY === true && env.TERM !== 'dumb'
const SHOWN_EVERY_MS = isTerminal ? 1_000 : 15_000
const ERASE = '\r\x1b[2K'

// A package has its data where it is run, as a checkout has them in its own directory.
if (IS_PACKAGE) env.LOCAL_DIR = resolve(env.LOCAL_DIR || '.local')

const [task, ...rest] = process.argv.slice(2)
/** A start has six steps, and this is the first of them (processes/start-log.ts). */
const STEP = task === 'start' ? '[1/6] Packages' : 'penstock'
const commands = {
  start: ['deploy/local/main.ts', ...rest],
  test: ['node_modules/vitest/vitest.mjs', 'run', ...rest],
  compose: ['test/support/containers/run-tests.ts', ...rest],
  bench: ['bench/main.ts', ...rest],
  package: ['--disable-warning=ExperimentalWarning', 'deploy/release/build-package.ts', ...rest],
  release: ['deploy/release/release.ts', ...rest],
  'console:link': ['deploy/local/issuer/print-link.ts'],
}
if (!Object.hasOwn(commands, task ?? '')) fail(USAGE)

const options = { start: ['--watch', '--version', '--help'], 'console:link': ['--help'] }[task]
if (options !== undefined) checkArguments(options)

if (task === 'start' && !rest.includes('--version')) show('')
const node = await (IS_PACKAGE ? findPackagedNode() : prepareNode())
if (task === 'start') requireLocalServers()
if (!['package', 'release', 'console:link'].includes(task)) await requireRedis()
if (isTerminal) process.stdout.write(ERASE)
handOver(node.path, commands[task])

/** Answers `--help`, and refuses a start with arguments that nothing reads, before anything is installed. */
function checkArguments(known) {
  const usage = `usage: ${IS_PACKAGE ? 'npx penstock' : 'npm run'} ${task} ${IS_PACKAGE ? '' : '-- '}${known.map(name => `[${name}]`).join(' ')}`
  const unknown = rest.find(word => !known.includes(word))
  if (unknown !== undefined) {
    process.stderr.write(`penstock: unknown argument ${JSON.stringify(unknown)}\n${usage}\n`)
    process.exit(2)
  }
  if (!rest.includes('--help')) return
  process.stdout.write(`${usage}\nSettings are variables of the environment: deploy/local/README.md\n`)
  process.exit(0)
}

/**
 * Returns a Node 22 for which the dependencies are installed. npm picks native packages for the Node it runs on
 * (uWebSockets.js has one for each), so `npm ci` has to run on Node 22 too. It cannot run on the Node in node_modules,
 * because it removes that directory.
 */
async function prepareNode() {
  const found = [process.execPath, IN_TREE, aside()].map(inspect).find(Boolean)
  if (found && isInstalled(found)) return found
  const installer = await nodeOutsideTheTree()
  await npm(`installing dependencies (npm ci on Node ${installer.version})`, installer, ['ci'], countPackages())
  const installed = inspect(IN_TREE)
  if (installed) rmSync(asideDirectory(), { recursive: true, force: true })
  return installed ?? installer
}

async function nodeOutsideTheTree() {
  const isInTree = process.execPath.startsWith(join(ROOT, 'node_modules'))
  const found = (isInTree ? undefined : inspect(process.execPath)) ?? inspect(aside())
  if (found) return found
  const { optionalDependencies } = readJson('package.json')
  const platform = Object.entries(optionalDependencies).find(([name]) =>
    name.endsWith(`${process.platform}-${process.arch}`),
  )
  const wanted = platform ? platform.join('@') : 'node@22'
  await npm('downloading Node 22', undefined, ['install', '--prefix', asideDirectory(), '--no-save', wanted])
  return inspect(aside()) ?? fail('Node 22 is required and could not be downloaded: install it from https://nodejs.org')
}

/**
 * Returns the Node 22 that runs this, or the one that npm has installed with the package. npm that ran on another Node has left out
 * what does not run there, and installs it now.
 */
async function findPackagedNode() {
  const packaged = Object.keys(readJson('package.json').optionalDependencies)
    .filter(name => name.endsWith(`${process.platform}-${process.arch}`))
    .flatMap(name => resolvePackage(`${name}/package.json`) ?? [])
    .map(path => join(dirname(path), 'bin/node'))
  const found = [process.execPath, ...packaged].map(inspect).find(Boolean)
  if (!found)
    fail(`Node 22.18 or a later 22 is required, and this is ${process.version}: install it from https://nodejs.org`)
  // Without the Node of the package, npm was to leave out optional dependencies, so that nothing else is missing.
  if (hasHttpServer(found) || packaged.length === 0) return found
  // npm removes what no package.json names, so it must not run in a folder without one, such as that of global packages.
  const project = ROOT.slice(0, ROOT.indexOf(`${sep}node_modules${sep}`))
  if (['package.json', 'node_modules/.package-lock.json'].every(path => existsSync(join(project, path)))) {
    const title = `installing what npm has left out on another Node (npm install on Node ${found.version})`
    await npm(title, found, ['install'], undefined, project)
  }
  return found
}

/** Returns true if the native part of uWebSockets.js for this Node is installed. */
function hasHttpServer({ version }) {
  const path = resolvePackage('uWebSockets.js')
  const name = `@uwsjs/${process.platform}-${process.arch}-${version.split('.', 1)}`
  return path !== undefined && resolvePackage(name, createRequire(path)) !== undefined
}

/**
 * Makes sure that the packages of the local servers are installed. They are optional dependencies, because the processes do not
 * need them. A server that the environment names is not started here.
 */
function requireLocalServers() {
  const needed = { chdb: 'CLICKHOUSE_URL', 'ffi-rs': 'CLICKHOUSE_URL', miniflare: 'S3_ENDPOINT', 'pino-pretty': '' }
  const missing = Object.keys(needed).filter(name => !env[needed[name]] && !resolvePackage(name))
  if (missing.length === 0) return
  const settings = missing.every(name => needed[name]) && [...new Set(missing.map(name => needed[name]))].join(' and ')
  const advice = `run "npm install --include=optional"${settings ? `, or set ${settings} to servers of your own` : ''}`
  fail(`a local start needs ${missing.join(', ')}, which npm has not installed: ${advice}`)
}

/** Returns the path to which Node resolves a name, or undefined. */
function resolvePackage(name, require = createRequire(join(ROOT, 'package.json'))) {
  try {
    return require.resolve(name)
  } catch {
    return undefined
  }
}

/** Returns undefined if the path does not exist, does not run, or is an unsupported version. */
function inspect(path) {
  if (!existsSync(path)) return undefined
  const version =
    path === process.execPath ? process.version : spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout
  return isUsableNode(version ?? '') ? { path, version: version.trim().slice(1) } : undefined
}

/**
 * Returns true if the lockfile that npm writes at the end of an installation contains all that package-lock.json lists.
 */
function isInstalled({ version: nodeVersion }) {
  const binary = `node_modules/@uwsjs/${process.platform}-${process.arch}-${nodeVersion.split('.', 1)}`
  if (!existsSync(join(ROOT, binary)) || !existsSync(join(ROOT, 'node_modules/.package-lock.json'))) return false
  const present = readJson('node_modules/.package-lock.json').packages
  return Object.entries(readJson('package-lock.json').packages).every(([path, { version, integrity, optional }]) => {
    if (path === '') return true
    const installed = present[path]
    if (!installed) return optional === true
    return installed.version === version && (integrity === undefined || installed.integrity === integrity)
  })
}

/** Returns a function that states how many of the packages of this platform `npm ci` has unpacked. */
function countPackages() {
  const fits = (wanted, own) => wanted === undefined || wanted.includes(own)
  const paths = Object.entries(readJson('package-lock.json').packages)
    .filter(([path, { os, cpu }]) => path !== '' && fits(os, process.platform) && fits(cpu, process.arch))
    .map(([path]) => join(ROOT, path, 'package.json'))
  return () => `, ${paths.filter(path => existsSync(path)).length} of ${paths.length}`
}

/** Runs npm on the given Node. Without one, runs npm on the first Node on PATH. */
async function npm(title, on, args, progress, cwd) {
  const path = on ? [dirname(on.path), env.PATH].join(delimiter) : env.PATH
  const quiet = ['--no-audit', '--no-fund', '--no-progress', '--loglevel=error']
  const cli = env.npm_execpath?.endsWith('npm-cli.js') ? env.npm_execpath : undefined
  const command = cli ? [on?.path ?? process.execPath, cli] : ['npm']
  const code = await run(title, [...command, ...args, ...quiet], { PATH: path }, progress, cwd)
  if (code !== 0) fail(`npm ${args[0]} failed`)
}

/** Runs a command, shows its title with the time that it takes and its progress, and resolves with its exit code. */
async function run(title, [command, ...args], settings = {}, progress = () => '', cwd = ROOT) {
  const startedAt = Date.now()
  const tell = () => show(`${title}${progress()} (${Math.floor((Date.now() - startedAt) / 1_000)} s)`)
  show(title)
  const timer = setInterval(tell, SHOWN_EVERY_MS)
  const child = spawn(command, args, { cwd, env: { ...env, ...settings }, stdio: ['ignore', 'ignore', 'pipe'] })
  child.stderr.on('data', text => process.stderr.write(isTerminal ? ERASE + text : text))
  const code = await new Promise(resolve => {
    child.once('error', () => resolve(undefined))
    child.once('close', resolve)
  })
  clearInterval(timer)
  return code
}

/** Makes sure that redis-server is installed. It is not needed to start with an external Redis. */
async function requireRedis() {
  if (task === 'start' && env.REDIS_URL) return
  if (hasCommand('redis-server')) return
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  if (hasCommand('apt-get') && (asRoot.length === 0 || succeeds('sudo', ['-n', 'true']))) {
    await aptGet(asRoot, 'update')
    await aptGet(asRoot, 'install', '-y', '--no-install-recommends', 'redis-server')
  } else if (process.platform === 'darwin' && hasCommand('brew')) {
    await run('installing redis (brew)', ['brew', 'install', '--quiet', 'redis'])
  }
  if (!hasCommand('redis-server')) {
    fail('redis-server is required and could not be installed: install Redis 7 or later and try again')
  }
}

/**
 * Runs the command and exits with its code. In a terminal, Ctrl-C reaches the command directly and npm forwards it too.
 * This process forwards signals as well, for a signal that is sent to it alone. The command counts them as one.
 */
function handOver(command, args) {
  const path = [join(ROOT, 'node_modules/.bin'), env.PATH].join(delimiter)
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...env, PATH: path },
    stdio: ['inherit', 'inherit', 'inherit', ...(task === 'start' ? ['ipc'] : [])],
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.once('error', error => fail(`${command} could not be started: ${error.message}`))
  child.once('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code))
}

function asideDirectory() {
  return join(resolve(ROOT, env.LOCAL_DIR || '.local'), 'node')
}

function aside() {
  return join(asideDirectory(), 'node_modules/.bin/node')
}

function readJson(path) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

function hasCommand(name) {
  return succeeds('sh', ['-c', 'command -v "$0"', name])
}

function succeeds(command, args) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

function aptGet(asRoot, ...args) {
  return run('installing redis-server (apt-get)', [
    ...asRoot,
    'env',
    'DEBIAN_FRONTEND=noninteractive',
    'apt-get',
    '-qq',
    ...args,
  ])
}

/** Shows how far the preparation is: in a terminal on one line that changes, elsewhere on a line of its own. */
function show(text) {
  const line = text ? `${STEP}: ${text}` : STEP
  process.stdout.write(isTerminal ? ERASE + line.slice(0, (process.stdout.columns || 80) - 1) : `${line}\n`)
}

function fail(text) {
  process.stderr.write(`${isTerminal ? ERASE : ''}penstock: ${text}\n`)
  process.exit(1)
}
