import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { ROOT } from '../../../deploy/local/config.ts'

const NOT_COPIED = ['.git', '.local', 'node_modules']

/** A change of one file of the product. */
export interface SourceChange {
  readonly file: string
  /** Texts that occur once in the file, each with its replacement. */
  readonly changes: readonly (readonly [before: string, after: string])[]
}

/** A copy of this tree with a change, and with the dependencies of this one. */
interface ChangedTree {
  readonly path: string
  remove(): Promise<void>
}

/** Copies this tree and changes a file of it. */
export async function changedTree(change: SourceChange): Promise<ChangedTree> {
  const { file } = change
  const path = await mkdtemp(join(tmpdir(), 'penstock-tree-'))
  const remove = () => rm(path, { recursive: true })
  try {
    await cp(ROOT, path, { recursive: true, filter: source => !NOT_COPIED.includes(basename(source)) })
    await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
    await writeFile(join(path, file), await changedSource(change))
    return { path, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Returns the changed text of a file. Throws if the product has changed so that the change has to change too. */
export async function changedSource({ file, changes }: SourceChange): Promise<string> {
  let source = await readFile(join(ROOT, file), 'utf8')
  for (const [before, after] of changes) {
    const found = source.split(before).length - 1
    if (found !== 1) throw new Error(`"${before}" occurs ${found} times in ${file}`)
    source = source.replace(before, () => after)
  }
  return source
}
