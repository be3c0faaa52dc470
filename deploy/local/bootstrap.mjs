import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Runs `npm start`, `npm test` and `npm run bench` on a fresh machine that has only Node 20 and npm. Installs the
 * dependencies, finds Node 22 and Redis or installs them, then runs the command. Plain JavaScript without dependencies.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const IN_TREE = join(ROOT, 'node_modules/.bin/node')
const { env } = process
const USAGE = 'usage: node deploy/local/bootstrap.mjs start|test|compose|bench [arguments]'
/** Node runs TypeScript files from 22.18 and 23.6 on, and uWebSockets.js has binaries up to Node 23. */
const isUsableNode = version => /^v?(22\.(1[89]|[2-9]\d)|23\.([6-9]|[1-9]\d))\./.test(version)

const [task, ...rest] = process.argv.slice(2)
const commands = {
  start: ['deploy/local/main.ts', ...rest],
  test: ['node_modules/vitest/vitest.mjs', 'run', ...rest],
  compose: ['test/support/containers/run-tests.ts', ...rest],
  bench: ['bench/main.ts', ...rest],
}
if (!Object.hasOwn(commands, task ?? '')) fail(USAGE)

const node = prepareNode()
requireRedis()
handOver(node.path, commands[task])

/**
 * Returns a Node 22 for which the dependencies are installed. npm picks native packages for the Node it runs on
 * (uWebSockets.js has one for each), so `npm ci` has to run on Node 22 too. It cannot run on the Node in node_modules,
 * because it removes that directory.
 */
function prepareNode() {
  const found = [process.execPath, IN_TREE, aside()].map(inspect).find(Boolean)
  if (found && isInstalled(found)) return found
  const installer = nodeOutsideTheTree()
  say(`installing dependencies (npm ci on Node ${installer.version})`)
  npm(installer, ['ci'])
  const installed = inspect(IN_TREE)
  if (installed) rmSync(asideDirectory(), { recursive: true, force: true })
  return installed ?? installer
}

function nodeOutsideTheTree() {
  const isInTree = process.execPath.startsWith(join(ROOT, 'node_modules'))
  const found = (isInTree ? undefined : inspect(process.execPath)) ?? inspect(aside())
  if (found) return found
  const { optionalDependencies } = readJson('package.json')
  const platform = Object.entries(optionalDependencies).find(([name]) =>
    name.endsWith(`${process.platform}-${process.arch}`),
  )
  say('downloading Node 22')
  const wanted = platform ? platform.join('@') : 'node@22'
  npm(undefined, ['install', '--prefix', asideDirectory(), '--no-save', wanted])
  return inspect(aside()) ?? fail('Node 22 is required and could not be downloaded: install it from https://nodejs.org')
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

/** Runs npm on the given Node. Without one, runs npm on the first Node on PATH. */
function npm(on, args) {
  const path = on ? [dirname(on.path), env.PATH].join(delimiter) : env.PATH
  const options = { cwd: ROOT, env: { ...env, PATH: path }, stdio: 'inherit' }
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  const cli = env.npm_execpath?.endsWith('npm-cli.js') ? env.npm_execpath : undefined
  const { status } = cli
    ? spawnSync(on?.path ?? process.execPath, [cli, ...args, ...quiet], options)
    : spawnSync('npm', [...args, ...quiet], options)
  if (status !== 0) fail(`npm ${args[0]} failed`)
}

/** Makes sure that redis-server is installed. It is not needed to start with an external Redis. */
function requireRedis() {
  if (task === 'start' && env.REDIS_URL) return
  if (hasCommand('redis-server')) return
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  if (hasCommand('apt-get') && (asRoot.length === 0 || succeeds('sudo', ['-n', 'true']))) {
    say('installing redis-server (apt-get)')
    aptGet(asRoot, 'update')
    aptGet(asRoot, 'install', '-y', '--no-install-recommends', 'redis-server')
  } else if (process.platform === 'darwin' && hasCommand('brew')) {
    say('installing redis (brew)')
    spawnSync('brew', ['install', '--quiet', 'redis'], { stdio: 'inherit' })
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
  const [command, ...before] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq']
  spawnSync(command, [...before, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}

function say(text) {
  process.stdout.write(`penstock: ${text}\n`)
}

function fail(text) {
  process.stderr.write(`penstock: ${text}\n`)
  process.exit(1)
}
