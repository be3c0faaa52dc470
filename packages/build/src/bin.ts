#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { uploadDirectory } from './index.ts'

const USAGE = `penstock-build upload DIR --version VERSION [options]

  --url URL            the service; else PENSTOCK_URL
  --url-prefix PREFIX  the start of the URLs of the bundles; default ~/, which matches any host
  --commit HASH        the commit that was built; else GITHUB_SHA
  --repository URL     https URL of the repository
  --keep-maps          leave the maps in DIR
  --allow-unmapped     only warn about bundles whose map is missing
  --dry-run            write nothing and send nothing

The secret key is read from PENSTOCK_SECRET_KEY. The exit code is 0 if the release has its maps, 1 if not, and 2 if the
arguments are wrong.
`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...{ version: text, url: text, 'url-prefix': text, commit: text, repository: text },
      ...{ 'keep-maps': flag, 'allow-unmapped': flag, 'dry-run': flag },
    },
  })
  const [command, directory, ...more] = positionals
  if (command !== 'upload' || directory === undefined || more.length > 0) throw new TypeError('name one directory')
  const { result } = await uploadDirectory(directory, {
    ...values,
    urlPrefix: values['url-prefix'],
    keepMaps: values['keep-maps'],
    allowUnmapped: values['allow-unmapped'],
    dryRun: values['dry-run'],
  })
  process.exitCode = result === 'ok' ? 0 : 1
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
  process.exitCode = 2
}
