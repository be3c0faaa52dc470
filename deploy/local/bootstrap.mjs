import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * What `npm start` and `npm test` run on a fresh machine, with nothing but Node 20 and npm: installs the dependencies,
 * finds Node 22, makes sure that Redis is there, then hands over. Plain JavaScript without a dependency.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const { env } = process
const USAGE = 'usage: node deploy/local/bootstrap.mjs start|test [arguments for vitest]'
/** uWebSockets.js has binaries up to Node 23; miniflare needs 22; 22.15 is the first with zstd in zlib. */
const isUsableNode = version => /^v?(22\.(1[5-9]|[2-9]\d)|23)\./.test(version)

const [task, ...rest] = process.argv.slice(2)
const commands = {
  start: ['--import', 'tsx', 'deploy/local/main.ts', ...rest],
  test: ['node_modules/vitest/vitest.mjs', 'run', ...rest],
}
if (!Object.hasOwn(commands, task ?? '')) fail(USAGE)

installDependencies()
const node = findNode()
requireRedis()
handOver(node, commands[task])

function installDependencies() {
  if (isInstalled()) return
  say('installing the dependencies (npm ci)')
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], 'npm ci failed: see above')
}

/** npm leaves a lockfile of its own as the last thing it installs: it must hold all that ours demands. */
function isInstalled() {
  try {
    const wanted = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages
    const present = JSON.parse(readFileSync(join(ROOT, 'node_modules/.package-lock.json'), 'utf8')).packages
    return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
      if (path === '') return true
      const installed = present[path]
      return installed ? installed.version === version && installed.integrity === integrity : optional === true
    })
  } catch {
    return false
  }
}

/** The running Node if it will do, else the one among the optional dependencies, else one installed aside. */
function findNode() {
  if (isUsableNode(process.version)) return process.execPath
  const aside = join(localDirectory(), 'node')
  const candidates = [join(ROOT, 'node_modules/.bin/node'), join(aside, 'node_modules/.bin/node')]
  const found = candidates.find(works)
  if (found) return found
  say(`installing Node 22 (this is ${process.version})`)
  run('npm', ['install', '--prefix', aside, '--no-audit', '--no-fund', '--loglevel=error', 'node@22'], '')
  const installed = candidates.find(works)
  return (
    installed ?? fail('Node 22 is needed and could not be installed: install it from https://nodejs.org and try again')
  )
}

function works(path) {
  if (!existsSync(path)) return false
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return status === 0 && isUsableNode(stdout.trim())
}

/** A local Redis is needed unless an external one is named; tests always run their own. */
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
    fail('redis-server is needed and could not be installed here: install Redis 7 or later and try again')
  }
}

/**
 * Runs the command and ends as it ends. In a terminal Ctrl-C reaches the command by itself, and npm forwards it once
 * more; forwarding here as well serves a signal sent to this process alone. The command counts them as one.
 */
function handOver(command, args) {
  const path = [join(ROOT, 'node_modules/.bin'), env.PATH].join(delimiter)
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...env, PATH: path },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.once('error', error => fail(`${command} could not be run: ${error.message}`))
  child.once('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code))
}

function localDirectory() {
  return env.LOCAL_DIR || join(ROOT, '.local')
}

function hasCommand(name) {
  return succeeds('sh', ['-c', 'command -v "$0"', name])
}

function succeeds(command, args) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

function run(command, args, failure) {
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0 && failure) fail(failure)
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
