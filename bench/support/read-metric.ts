/** The sum of a metric over those of its series that have this label; 0 when there is none. */
export async function readMetric(adminUrl: string, name: string, label: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const lines = text.split('\n').filter(line => line.startsWith(`${name}{`) && line.includes(label))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
