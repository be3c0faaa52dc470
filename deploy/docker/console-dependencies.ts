/** Packages of which the bundle of the console in the image is made. Most are development dependencies: no process imports them. */
export const CONSOLE_DEPENDENCIES: readonly string[] = [
  '@dagrejs/dagre',
  'preact',
  '@preact/signals',
  'oauth4webapi',
  '@oazapfts/runtime',
  '@rrweb/replay',
  'uplot',
]
