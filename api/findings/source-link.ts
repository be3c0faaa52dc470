import type { Release } from '../../schemas/records/directory.ts'

const REPOSITORY_MAX_LENGTH = 500

/** How the hosts of repositories name a line, by a part of their host name. */
const SHAPES: Readonly<Record<string, (commit: string, path: string, line: number) => string>> = {
  github: (commit, path, line) => `/blob/${commit}/${path}#L${line}`,
  gitlab: (commit, path, line) => `/-/blob/${commit}/${path}#L${line}`,
  bitbucket: (commit, path, line) => `/src/${commit}/${path}#lines-${line}`,
}

/** Returns the address of a line of a source, or undefined if the file is not one of the repository. */
export type SourceLink = (file: string, line: number) => string | undefined

/**
 * Returns the addresses of lines in the repository that a release names in `metadata.repository`, at its commit. Returns
 * undefined if it names none that is an https URL of a known host, or no commit.
 */
export function sourceLinks(release: Pick<Release, 'commit' | 'metadata'> | undefined): SourceLink | undefined {
  const { commit } = release ?? {}
  const repository = repositoryOf(release?.metadata?.repository)
  const shape = Object.entries(SHAPES).find(([name]) => repository?.hostname.split('.').includes(name))?.[1]
  if (repository === undefined || shape === undefined || !/^[0-9a-f]{7,64}$/i.test(commit ?? '')) return undefined
  const base = repository.origin + repository.pathname.replace(/\/$/, '').replace(/\.git$/, '')
  return (file, line) => {
    const segments = file.split('/')
    // An absolute path is of the machine that built it.
    if (line < 1 || segments.some(name => name === '' || name === '.' || name === '..' || /^[a-z]:$/i.test(name))) {
      return undefined
    }
    return base + shape(commit ?? '', segments.map(encodeSegment).join('/'), line)
  }
}

/** Encodes a name of a path. A part of a character that was cut is replaced, because it cannot be encoded. */
function encodeSegment(name: string): string {
  return encodeURIComponent(name.toWellFormed())
}

function repositoryOf(value: unknown): URL | undefined {
  if (typeof value !== 'string' || value.length > REPOSITORY_MAX_LENGTH || !URL.canParse(value)) return undefined
  const url = new URL(value)
  const isPlain = url.protocol === 'https:' && url.username === '' && url.password === ''
  return isPlain && url.search === '' && url.hash === '' && /^\/[^/]+\/./.test(url.pathname) ? url : undefined
}
