import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files of a certificate and its key, as PEM. */
export interface CertificateFiles {
  readonly certificate: string
  readonly key: string
}

/** A certificate authority of a test. */
export interface Authority {
  /** File with its certificate, as PEM. */
  readonly file: string
  readonly pem: string
  /** Issues a certificate for a name. Servers are given the names under which they are reached, such as `DNS:localhost`. */
  issue(name: string, alternatives?: string, days?: number): CertificateFiles
}

/** Creates an authority whose files are in a directory. */
export function createAuthority(dir: string): Authority {
  mkdirSync(dir, { recursive: true })
  const [file, key] = [join(dir, 'ca.pem'), join(dir, 'ca-key.pem')]
  openssl([
    'req',
    '-x509',
    ...NEW_KEY,
    '-keyout',
    key,
    '-out',
    file,
    '-days',
    '2',
    '-subj',
    '/CN=Authority of the tests',
  ])
  return {
    file,
    pem: readFileSync(file, 'utf8'),
    issue(name, alternatives = `DNS:${name}`, days = 2) {
      const files = { certificate: join(dir, `${name}.pem`), key: join(dir, `${name}-key.pem`) }
      const [request, extensions] = [join(dir, `${name}.csr`), join(dir, `${name}.ext`)]
      writeFileSync(extensions, `subjectAltName=${alternatives}\nbasicConstraints=CA:FALSE\n`)
      openssl(['req', ...NEW_KEY, '-keyout', files.key, '-out', request, '-subj', `/CN=${name}`])
      const signed = ['-CA', file, '-CAkey', key, '-CAcreateserial', '-extfile', extensions]
      openssl(['x509', '-req', '-in', request, ...signed, '-out', files.certificate, '-days', String(days)])
      return files
    },
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

function openssl(args: string[]): void {
  const { status, stderr, error } = spawnSync('openssl', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl ${args[0]} failed: ${error?.message ?? stderr}`)
}
