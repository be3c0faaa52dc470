import { isHash, isHexHash, isShortHexHash } from './is-hash.ts'

/** Segments of a path that are compared. */
const MAX_SEGMENTS = 12

/**
 * Returns a file name that is equal in every release and on every machine. Hashes and versions become `*`. A URL keeps its
 * whole path, a file on a disk the directories that belong to the application or the package.
 */
export function normalizeFile(file: string): string {
  if (file.startsWith('data:')) return 'data:'
  if (/^(?:node|bun|ext):/.test(file)) return file
  const location = file.startsWith('blob:') ? file.slice(5) : file
  const scheme = /^([a-z][a-z0-9+.-]{0,30}):\/\/[^/]*/i.exec(location)
  const path = location.slice(scheme?.[0].length ?? 0).replace(/\?.*$/, '')
  if (scheme !== null && !/^(?:file|webpack|webpack-internal|rsc|turbopack)$/i.test(scheme[1] ?? '')) {
    return normalizeUrlPath(path.replace(/#.*$/, ''))
  }
  // The scheme of a bundler names the application, so the path is relative to it.
  const isRelative = scheme !== null && scheme[1] !== 'file'
  return normalizeDiskPath(path.replaceAll('\\', '/').replace(isRelative ? /^\/+/ : /^[a-z]:/i, ''))
}

/** Returns whether the name has a hash, as bundlers write it. */
export function hasHash(file: string): boolean {
  const name = segmentsOf(file.replace(/[?#].*$/, '')).pop() ?? ''
  return normalizeName(name).includes('*')
}

function normalizeUrlPath(path: string): string {
  const segments = segmentsOf(path)
  const name = segments.pop() ?? ''
  const directories = segments.map(normalizeDirectory)
  return [...directories.slice(-MAX_SEGMENTS), normalizeName(name)].join('/')
}

/** Directories that hold packages, or an application as a package. */
const PACKAGE_ROOT =
  /^(?:node_modules|bower_components|site-packages|dist-packages|gems|vendor|mod|app\.asar|python\*|.+\.app)$/
/** Directories that applications are put into. They differ between machines. */
const DEPLOY_ROOT =
  /^(?:\*|builds?|data|deploy|deployments?|dev|git|home|local|mnt|opt|private|projects?|repos?|root|runner|sites|sources?|srv|src|usr|users|var|volumes|work|workdir|workspaces|www)$/i
/** Directories that are an application, whatever its name. */
const APPLICATION = /^(?:app|application|code|html|htdocs|httpdocs|task|workspace|wwwroot)$/i
/** Names that say little without their directory. */
const COMMON_NAME = /^(?:index|main|mod|lib|page|route|layout|handler|__init__)\.\w+$/

function normalizeDiskPath(path: string): string {
  const segments = segmentsOf(path)
  const name = normalizeName(segments.pop() ?? '')
  if (/^\/(?:tmp|var\/folders|private\/var\/folders|var\/tmp)\/|\/AppData\/Local\/Temp\//.test(path)) {
    return `tmp/${name.replace(/\d+/g, '*')}`
  }
  const directories = segments.map(normalizeDirectory)
  const root = directories.findLastIndex(directory => PACKAGE_ROOT.test(directory))
  if (root >= 0) return [...directories.slice(root + 1).slice(-MAX_SEGMENTS), name].join('/')
  const own = path.startsWith('/') ? withoutDeployRoot(directories) : directories
  return [...own.slice(COMMON_NAME.test(name) ? -2 : -1), name].join('/')
}

/** Removes the directory of the application and those it was put into: `/srv/shop`, `/home/anna/src/shop`, `/app`. */
function withoutDeployRoot(directories: readonly string[]): readonly string[] {
  const release = directories.findLastIndex(directory => /^(?:releases|current)$/.test(directory))
  if (release >= 0) return directories.slice(directories[release + 1] === '*' ? release + 2 : release + 1)
  let start = /^(?:home|users)$/i.test(directories[0] ?? '') ? 2 : 0
  while (DEPLOY_ROOT.test(directories[start] ?? '')) start++
  if (APPLICATION.test(directories[start] ?? '')) return directories.slice(start + 1)
  // A runner checks out `work/shop/shop`.
  const isRunner = directories[start - 1] === 'work' && directories[start] === directories[start + 1]
  return directories.slice(isRunner ? start + 2 : start + 1)
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter(segment => segment !== '' && segment !== '.' && segment !== '..')
}

function normalizeDirectory(name: string): string {
  if (isHexHash(name) || isShortHexHash(name) || /^\d{5,}$/.test(name) || (name.length >= 16 && isHash(name)))
    return '*'
  // Android installs a package in `~~hash==/name-hash==`.
  if (name.endsWith('==')) return name.replace(/^~~.*|(?<=-)[^-]*(?:-[^-.]*)?==$/, '*')
  // The cache of Yarn: `express-npm-4.18.1-3f9a2c1b7d-8e9f0a.zip`.
  if (name.endsWith('.zip')) return name.replace(/-(?:npm|virtual|patch)-.*$/, '-*')
  return withoutVersion(name)
}

/** Replaces versions: `vue@3.4.1`, `rack-2.2.7`, `v1.2.3-beta.1`, `python3.11`, `express@4.18.1_debug@2.6.9`. */
function withoutVersion(name: string): string {
  return name
    .replace(/(.)@v?\d.*$/, '$1@*')
    .replace(/^v?\d[\d._]*(?:[-+][\w.+-]*)?$/, '*')
    .replace(/^((?:python|php|ruby|node|go|jdk|java)-?)\d[\d.]*$/, '$1*')
    .replace(/([-_])v?\d+(?:\.\d+)+(?:[-+.][\w.+-]*)?$/, '$1*')
}

/** Changes `3f9a2c1b.js`, `app.DkJ2x9aB.js` and `app-DkJ2x9aB.js` to `*.js`, `app.*.js` and `app-*.js`. */
function normalizeName(name: string): string {
  const versioned = name.replace(/([-_@])v?\d+(?:\.\d+)+(?=[-.])/, '$1*')
  const parts = versioned.split('.')
  const extension = parts.length > 1 ? `.${parts.pop()}` : ''
  const normalized = parts.map((part, i) => {
    if (isHexHash(part) || (i > 0 && (isShortHexHash(part) || /^\d{5,}$/.test(part)))) return '*'
    return normalizeSuffix(part)
  })
  return normalized.join('.') + extension
}

/** Replaces a hash suffix, the longest one: the characters of base64url and of Turbopack have dashes. */
function normalizeSuffix(part: string): string {
  if (isHash(part)) return '*'
  let separators = 0
  for (let i = 1; i < part.length && separators < 8; i++) {
    if (part[i] !== '-' && part[i] !== '_') continue
    separators++
    const suffix = part.slice(i + 1)
    if (isHash(suffix) || isShortHexHash(suffix) || /^\d{6,}$/.test(suffix)) return `${part.slice(0, i + 1)}*`
  }
  return part
}
