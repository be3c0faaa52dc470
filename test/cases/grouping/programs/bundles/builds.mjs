// builds.mjs FOLDER VERSION: writes the stacks of Chromium and the maps of their files, a file for each bundler.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const [folder = '', version] = process.argv.slice(2)
const ADDRESS = /http:\/\/127\.0\.0\.1:\d{4,5}(\/[^\s:)]+)/g
const lines = readFileSync(0, 'utf8').trim().split('\n')
mkdirSync(folder, { recursive: true })
for (const bundler of readdirSync('out')) {
  const stacks = {}
  const maps = {}
  for (const { scenario, stacktrace } of lines.map(line => JSON.parse(line))) {
    const [of, browser, name] = scenario.split(':')
    if (of !== bundler || browser !== 'chromium') continue
    for (const [, path] of stacktrace.matchAll(ADDRESS)) {
      const file = join('out', bundler, path)
      const map = /sourceMappingURL=(\S+)\s*$/.exec(readFileSync(file, 'utf8'))?.[1]
      if (map !== undefined) maps[path] = withoutLibraries(JSON.parse(readFileSync(join(dirname(file), map), 'utf8')))
    }
    stacks[name] = stacktrace.replace(ADDRESS, 'https://shop.example$1')
  }
  writeFileSync(join(folder, `${bundler}-${version}.json`), `${JSON.stringify({ stacks, maps }, null, 2)}\n`)
}

/** Keeps the text of the sources of the application alone. */
function withoutLibraries({ version: format, sources, sourcesContent = [], names, mappings, sections }) {
  if (sections) {
    return { version: 3, sections: sections.map(({ offset, map }) => ({ offset, map: withoutLibraries(map) })) }
  }
  const contents = sources.map((name, i) => (/src\/\w+\.js$/.test(name) ? sourcesContent[i] : null))
  return { version: format, sources, sourcesContent: contents, names, mappings }
}
