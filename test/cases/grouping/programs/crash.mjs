// crash.mjs SCENARIO COMMAND [ARGUMENT]: runs a program that crashes, and writes what it printed as a line of JSON.
import { spawnSync } from 'node:child_process'

const [scenario, command, ...args] = process.argv.slice(2)
const stacktrace = spawnSync(command, args, { encoding: 'utf8' }).stderr
const [first = '', second = '', ...rest] = stacktrace.split('\n')
const found = first.startsWith('panic: ')
  ? { type: 'panic', message: first.slice(7), stacktrace }
  : stacktrace.includes('panicked at')
    ? { type: 'panic', message: stacktrace.split('panicked at')[1]?.split('\n')[1] ?? '', stacktrace }
    : { type: first, message: second, stacktrace: rest.join('\n') }
process.stdout.write(`${JSON.stringify({ scenario, ...found })}\n`)
