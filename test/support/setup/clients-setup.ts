import type { TestProject } from 'vitest/node'
import { installClients } from '../clients/client-programs.ts'
import { installOpenApiTools } from '../clients/openapi-tools.ts'

/** Provides the clients of OpenTelemetry; prints the reason for each that is missing. */
export default function setup(project: TestProject): void {
  const clients = installClients()
  for (const [name, client] of Object.entries(clients)) {
    if ('missing' in client) console.log(`\nSKIPPED: no client ${name}, because ${client.missing}\n`)
  }
  project.provide('clients', clients)
  const tools = installOpenApiTools()
  for (const [language, installed] of Object.entries(tools)) {
    if ('missing' in installed)
      console.log(`\nSKIPPED: no generator of clients for ${language}, because ${installed.missing}\n`)
  }
  project.provide('openApiTools', tools)
}
