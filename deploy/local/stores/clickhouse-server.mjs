import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { DataType, load, open } from 'ffi-rs'

/**
 * Runs a ClickHouse server in this process. libchdb contains all of clickhouse-local. Its entry point is called with a
 * query that starts the HTTP interface and then reads stdin, so that closing stdin ends the server. A node of a cluster
 * (`--tcp_port`) also starts the native protocol.
 * ffi-rs makes the call on the main thread, because ClickHouse checks the bounds of the stack and refuses any other.
 */
const LISTEN_TCP = process.argv.some(argument => argument.startsWith('--tcp_port=')) ? 'SYSTEM START LISTEN TCP; ' : ''
const QUERY = `${LISTEN_TCP}SYSTEM START LISTEN HTTP; SELECT count() FROM file('/dev/stdin', LineAsString) FORMAT Null`

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

/** Returns the path of the library for this platform. chdb depends on its package, so it is resolved from chdb. */
function libraryPath() {
  const platform = `${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
  const fromChdb = createRequire(createRequire(import.meta.url).resolve('chdb'))
  const directory = dirname(fromChdb.resolve(`@chdb/lib-${platform}/package.json`))
  const library = ['libchdb.so', 'libchdb.dylib'].map(name => join(directory, name)).find(path => existsSync(path))
  if (!library) throw new Error(`@chdb/lib-${platform} contains no libchdb: install the dependencies again`)
  return library
}
