import { readFileSync } from 'node:fs'

const DOCKERFILE = new URL('../../../deploy/docker/Dockerfile', import.meta.url)

/** Settings of malloc in the image, with which containers run. */
export const IMAGE_MALLOC: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from(readFileSync(DOCKERFILE, 'utf8').matchAll(/\b(MALLOC_\w+)=(\d+)/g), ([, name, value]) => [name, value]),
)
