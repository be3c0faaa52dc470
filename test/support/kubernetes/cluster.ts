import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findHelm, NO_HELM } from '../../../deploy/kubernetes/render.ts'
import { MIB } from '../../../schemas/units.ts'

const OUTPUT_BYTES = 64 * MIB
const run = promisify(execFile)

/** A Kubernetes cluster. */
export interface Cluster {
  /** Whether the tool has started it, and can load images. */
  readonly isOwn: boolean
  kubectl(...args: string[]): Promise<string>
  /** Runs `kubectl` with this input, such as manifests. */
  kubectlWith(input: string, ...args: string[]): Promise<string>
  helm(...args: string[]): Promise<string>
  /** Makes images of Docker's engine known to the cluster. */
  load(...images: string[]): Promise<void>
  stop(): Promise<void>
}

/**
 * Returns the cluster of KUBECONFIG, else one that the program of KUBERNETES_TOOL starts: `up` prints a line `KUBECONFIG=…` and
 * may print one `PATH=…`, `keda` installs KEDA, `load IMAGE…` makes images known, and `down` ends it. Returns the reason if
 * there is none.
 */
export async function findCluster(): Promise<Cluster | string> {
  const { KUBECONFIG: kubeconfig, KUBERNETES_TOOL: tool } = process.env
  if (kubeconfig) return createCluster({ ...process.env }, undefined)
  if (!tool) return 'neither KUBECONFIG nor KUBERNETES_TOOL is set'
  const { stdout } = await run(tool, ['up'], { maxBuffer: OUTPUT_BYTES })
  const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(stdout)?.[1]
  const path = setting('PATH')?.replace('$PATH', process.env.PATH ?? '') ?? process.env.PATH
  const env = { ...process.env, KUBECONFIG: setting('KUBECONFIG'), PATH: path }
  await run(tool, ['keda'], { env, maxBuffer: OUTPUT_BYTES })
  return createCluster(env, tool)
}

function createCluster(env: NodeJS.ProcessEnv, tool: string | undefined): Cluster | string {
  const helm = findHelm(env)
  if (helm === undefined) return NO_HELM
  const call = async (program: string, args: readonly string[]) =>
    (await run(program, args, { env, maxBuffer: OUTPUT_BYTES })).stdout.trim()
  return {
    isOwn: tool !== undefined,
    kubectl: (...args) => call('kubectl', args),
    async kubectlWith(input, ...args) {
      const dir = await mkdtemp(join(tmpdir(), 'penstock-kubernetes-'))
      const file = join(dir, 'input.yaml')
      await writeFile(file, input, { mode: 0o600 })
      try {
        return await call('kubectl', [...args, '-f', file])
      } finally {
        await rm(dir, { recursive: true })
      }
    },
    helm: (...args) => call(helm, args),
    async load(...images) {
      if (tool) await run(tool, ['load', ...images], { env, maxBuffer: OUTPUT_BYTES })
    },
    async stop() {
      if (tool && !process.env.KUBERNETES_KEEP) await run(tool, ['down'], { env })
    },
  }
}

/** Builds an image with Docker's engine. */
export async function buildImage(tag: string, file: string, context: string, ...args: string[]): Promise<void> {
  // The engine of Debian has no other builder.
  const env = { ...process.env, DOCKER_BUILDKIT: '0' }
  const child = spawn('docker', ['build', '-q', '-t', tag, '-f', file, ...args, context], { env, stdio: 'pipe' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', data => (output += data))
  const code = await new Promise(resolve => child.once('exit', resolve))
  if (code !== 0) throw new Error(`docker build ${tag} failed:\n${output.slice(-4_000)}`)
}
