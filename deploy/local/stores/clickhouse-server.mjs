import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { DataType, load, open } from 'ffi-rs'

/**
 * A ClickHouse server in a process of its own: libchdb holds clickhouse-local whole, and its entry point is called with
 * a query that starts the HTTP interface and then reads stdin, so that closing stdin ends the server.
 * ffi-rs calls it on the main thread; ClickHouse's check of the stack's bounds refuses calls on a foreign stack.
 */
const QUERY = "SYSTEM START LISTEN HTTP; SELECT count() FROM file('/dev/stdin', LineAsString) FORMAT Null"

open({ library: 'chdb', path: libraryPath() })
const argv = ['clickhouse', ...process.argv.slice(2), `--query=${QUERY}`]
load({
  library: 'chdb',
  funcName: 'chdb_query_cmdline',
  retType: DataType.I64,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [argv.length, argv],
})
process.exit(0)

/** The library in chdb's package for this platform: chdb depends on it, so it is resolved from there. */
function libraryPath() {
  const platform = `${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
  const fromChdb = createRequire(createRequire(import.meta.url).resolve('chdb'))
  const directory = dirname(fromChdb.resolve(`@chdb/lib-${platform}/package.json`))
  const library = ['libchdb.so', 'libchdb.dylib'].map(name => join(directory, name)).find(path => existsSync(path))
  if (!library) throw new Error(`no libchdb in @chdb/lib-${platform}`)
  return library
}
