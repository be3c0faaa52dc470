import { readFileSync } from 'node:fs'

/** Files and sockets that a process needs besides the connections of its clients. */
const OWN_FILES = 500

/**
 * Returns a warning if this process may not open as many files as these connections need: it could then accept none, not even
 * on its admin port. Undefined if it may, or if the limit is not known. Node has raised the soft limit to the hard one.
 */
export function openFilesWarning(connections: number, limit = openFilesLimit()): string | undefined {
  const needed = connections + OWN_FILES
  if (limit === undefined || limit >= needed) return undefined
  const remedy = `allow it ${needed} (ulimit -n, LimitNOFILE of systemd), or set MAX_CONNECTIONS to less`
  return `this process may open ${limit} files, which is too few for ${connections} connections: ${remedy}`
}

/** Returns the number of files that this process may open, or undefined where it is not known or unlimited. */
function openFilesLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? undefined : Number(limit)
  } catch {
    // Only Linux has the file.
    return undefined
  }
}
