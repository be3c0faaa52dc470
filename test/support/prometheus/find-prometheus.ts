import { findCommand } from '../debian-package.ts'

/** The commands of a Prometheus. */
export interface Prometheus {
  readonly prometheus: string
  readonly promtool: string
}

/** Returns the commands of Prometheus: those in PATH, else those of Debian's package. Returns the reason if it cannot be had. */
export function findPrometheus(): Prometheus | string {
  const [server, tool] = ['prometheus', 'promtool'].map(name => findCommand('prometheus', `usr/bin/${name}`))
  if (server === undefined || 'fault' in server) return server?.fault ?? ''
  if (tool === undefined || 'fault' in tool) return tool?.fault ?? ''
  return { prometheus: server.command, promtool: tool.command }
}
