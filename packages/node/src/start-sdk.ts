import { isMainThread } from 'node:worker_threads'
import { logs } from '@opentelemetry/api'
import { logs as formerLogs } from '@opentelemetry/api-logs'
import type { Instrumentation } from '@opentelemetry/instrumentation'
import {
  defaultResource,
  detectResources,
  envDetector,
  hostDetector,
  osDetector,
  processDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources'
import { NodeSDK } from '@opentelemetry/sdk-node'
import { captureConsole } from './capture-console.ts'
import { captureExceptions } from './capture-exceptions.ts'
import { createPipelines } from './create-pipelines.ts'
import { describeService } from './describe-service.ts'
import { watchEnd, watchSignals } from './end-of-process.ts'
import { recordCauses, withCauses } from './exceptions-with-causes.ts'
import { hookImports } from './import-hook.ts'
import { createInstrumentations } from './instrumentations.ts'
import type { Settings } from './read-settings.ts'
import { sendBlocking } from './send-blocking.ts'

/** A process that ends waits at most this long for its last records, and as long again for exporters of the SDK. */
const END_DEADLINE_MS = 3_000

/** Starts the SDK before the application is loaded. */
export async function startSdk({ destinations, off }: Settings): Promise<void> {
  const { env } = process
  const instrumentations = createInstrumentations(env)
  hookImports(instrumentations.flatMap(modulesOf))
  const resource = describeProcess()
  // Otherwise the first records would wait for it, and be lost if the process ends at once.
  await resource.waitForAsyncAttributes?.()
  const pipelines = createPipelines(destinations, env, warnOnce())
  const sdk = new NodeSDK({
    ...pipelines.configuration,
    instrumentations,
    resource,
    ...(env.OTEL_NODE_RESOURCE_DETECTORS === undefined && { autoDetectResources: false }),
  })
  sdk.start()
  recordCauses()
  // The transport of winston still uses the API that logs had before they became part of the common one.
  formerLogs.setGlobalLoggerProvider(withCauses(logs.getLoggerProvider()))
  if (!off.has('console')) captureConsole()
  if (!off.has('exceptions')) captureExceptions()
  const ending = {
    prepare: () => beforeDeadline(pipelines.isComplete ? pipelines.collect() : sdk.shutdown()),
    send: () => sendBlocking(pipelines.takeRequests(), END_DEADLINE_MS),
  }
  watchEnd(ending)
  if (isMainThread && !off.has('signals')) watchSignals(ending)
}

/** Returns the attributes of the service and of the process. Those of `OTEL_RESOURCE_ATTRIBUTES` have precedence. */
function describeProcess(): Resource {
  const { env, argv } = process
  const service = resourceFromAttributes(describeService({ env, script: argv[1], cwd: process.cwd() }))
  if (env.OTEL_NODE_RESOURCE_DETECTORS !== undefined) return defaultResource().merge(service)
  const detectors = [serviceInstanceIdDetector, osDetector, processDetector, hostDetector, envDetector]
  return defaultResource().merge(service).merge(detectResources({ detectors }))
}

function modulesOf(instrumentation: Instrumentation): string[] {
  const { getModuleDefinitions } = instrumentation as { getModuleDefinitions?: () => { name: string }[] }
  return getModuleDefinitions?.call(instrumentation).map(({ name }) => name) ?? []
}

/** The first failure is worth a line: the key may be wrong. */
function warnOnce(): (error: Error) => void {
  let isWarned = false
  return error => {
    if (isWarned) return
    isWarned = true
    process.stderr.write(`penstock: telemetry could not be sent: ${error.message}\n`)
  }
}

async function beforeDeadline(work: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, END_DEADLINE_MS).unref()
  await Promise.race([work.catch(() => undefined), promise])
  clearTimeout(timer)
}
