import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { cached, fault } from './client-programs.ts'

/** Folder with the tools of a language, or why they are missing. */
export type InstalledTools = { readonly folder: string } | { readonly missing: string }

/** Tools that read the OpenAPI document, by the language they are for. */
export type ToolLanguage = 'python' | 'go' | 'typescript'

const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const NPM_PACKAGES = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0'] as const

/** Installs the tools that make clients of the OpenAPI document, once, in the cache of this user. */
export function installOpenApiTools(): Record<ToolLanguage, InstalledTools> {
  return { python: pythonTools(), go: goTools(), typescript: typescriptTools() }
}

function pythonTools(): InstalledTools {
  const version = spawnSync('python3', ['--version'], { encoding: 'utf8' })
  if (version.status !== 0) return { missing: 'there is no python3' }
  const requirements = 'openapi/requirements.txt'
  return toolsIn('openapi-python', [requirements], version.stdout, (target, sources) =>
    fault('python3', [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--target',
      target,
      '--requirement',
      join(sources, requirements),
    ]),
  )
}

function goTools(): InstalledTools {
  const version = spawnSync('go', ['version'], { encoding: 'utf8' })
  if (version.status !== 0) return { missing: 'there is no Go toolchain' }
  return toolsIn('openapi-go', [], version.stdout + OAPI_CODEGEN, target =>
    process.env.TEST_LENGTH === 'nightly'
      ? fault('go', ['install', OAPI_CODEGEN], { ...process.env, GOBIN: target })
      : 'it takes minutes to build: npm run test:clients -- --mode nightly does',
  )
}

function typescriptTools(): InstalledTools {
  return toolsIn('openapi-typescript', [], NPM_PACKAGES.join(), target =>
    fault('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', target, ...NPM_PACKAGES]),
  )
}

function toolsIn(...args: Parameters<typeof cached>): InstalledTools {
  const { folder, missing } = cached(...args)
  return missing === undefined ? { folder } : { missing }
}
