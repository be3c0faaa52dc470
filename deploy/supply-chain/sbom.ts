import { writeFileSync } from 'node:fs'
import { z } from 'zod'
import { runNpmOnProduction } from './production-tree.ts'

/**
 * Entry point of `npm run sbom`: writes the bill of materials of the production packages in CycloneDX to the named file, or to
 * stdout. Exits with 1 if npm fails or leaves out a package of package-lock.json.
 */
const bomSchema = z.looseObject({
  bomFormat: z.literal('CycloneDX'),
  components: z.array(z.looseObject({ 'bom-ref': z.string(), version: z.string() })),
})

const { status, stdout, stderr, tree } = runNpmOnProduction(['sbom', '--sbom-format', 'cyclonedx'])
if (status !== 0) fail(`npm sbom failed: ${stderr}`)
const bom = bomSchema.parse(JSON.parse(stdout))
if (bom.components.length < tree.packages.size) {
  fail(`npm sbom lists ${bom.components.length} of ${tree.packages.size} packages of package-lock.json`)
}
const [file] = process.argv.slice(2)
if (file === undefined) process.stdout.write(stdout)
else {
  writeFileSync(file, stdout)
  process.stderr.write(`${file}: ${bom.components.length} packages\n`)
}

function fail(text: string): never {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}
