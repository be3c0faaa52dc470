import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Regenerates `generated/` from `proto/`: JavaScript with declarations, because the TypeScript of protoc-gen-es has
 * enums.
 */
const root = fileURLToPath(new URL('../..', import.meta.url))
const template = {
  version: 'v2',
  plugins: [
    {
      local: `${root}node_modules/.bin/protoc-gen-es`,
      out: 'schemas/otlp/generated',
      opt: ['target=js+dts', 'import_extension=js'],
    },
  ],
}

rmSync(`${root}schemas/otlp/generated`, { recursive: true, force: true })
execFileSync(
  `${root}node_modules/.bin/buf`,
  ['generate', '--template', JSON.stringify(template), 'schemas/otlp/proto'],
  { cwd: root, stdio: 'inherit' },
)
