import { register } from 'node:module'
import { register as registerSynchronous, supportsSyncHooks } from 'import-in-the-middle/register-hooks.mjs'

/**
 * Lets instrumentations change these modules when `import` loads them; `require` needs no hook. All other modules load as ever.
 * Only Node.js 22.22.3, 24.11.1 and later can do it without another thread.
 */
export function hookImports(modules: readonly string[]): void {
  const include = [...new Set(modules.filter(name => !name.startsWith('/')))]
  if (supportsSyncHooks()) registerSynchronous({ include })
  else register('import-in-the-middle/hook.mjs', import.meta.url, { data: { include } })
}
