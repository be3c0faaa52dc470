import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Directory into which the console is built. */
export const BUILT_CONSOLE = fileURLToPath(new URL('../../console/dist/', import.meta.url))

/** A file of the built console, in memory. */
export interface BuiltFile {
  /** Its name in the directory of assets, with the hash of its content. */
  readonly name: string
  readonly contentType: string
  readonly plain: Buffer
  readonly gzip: Buffer
}

/** The built console. */
export interface BuiltConsole {
  /** HTML of the document of all pages. */
  readonly document: string
  /** HTML of the document in which recordings are played. */
  readonly player: string
  readonly assets: readonly BuiltFile[]
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Reads the built console, 0.3 MB. Returns undefined if the directory has none. */
export function readBuiltConsole(directory: string): BuiltConsole | undefined {
  try {
    const document = readFileSync(join(directory, 'index.html'), 'utf8')
    const player = readFileSync(join(directory, 'player.html'), 'utf8')
    const names = readdirSync(join(directory, 'assets')).filter(name => Object.hasOwn(TYPES, extname(name)))
    return { document, player, assets: names.map(name => readAsset(join(directory, 'assets'), name)) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function readAsset(directory: string, name: string): BuiltFile {
  return {
    name,
    contentType: TYPES[extname(name)] ?? '',
    plain: readFileSync(join(directory, name)),
    gzip: readFileSync(join(directory, `${name}.gz`)),
  }
}
