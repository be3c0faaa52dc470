import { readFileSync } from 'node:fs'

const DOCKERFILE = new URL('../../../deploy/docker/Dockerfile', import.meta.url)
const ENTRYPOINT = new URL('../../../deploy/docker/entrypoint.sh', import.meta.url)

/** Settings of malloc in the image, with which containers run. */
export const IMAGE_MALLOC: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from(readFileSync(DOCKERFILE, 'utf8').matchAll(/\b(MALLOC_\w+)=(\d+)/g), ([, name, value]) => [name, value]),
)

/** Settings of memory with which the image starts an edge. */
export const IMAGE_EDGE_MEMORY: Readonly<Record<string, string>> = { ...IMAGE_MALLOC, NODE_OPTIONS: edgeFlags() }

function edgeFlags(): string {
  const [, flags] = /^ *edge\) exec node (--.*) \/app\/ingest\/main\.ts/m.exec(readFileSync(ENTRYPOINT, 'utf8')) ?? []
  if (flags === undefined) throw new Error('the entrypoint of the image starts the edge without flags of node')
  return flags
}
