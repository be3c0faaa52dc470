/** Returns the sum of a metric over its series with this label, or 0 if there are none. */
export async function readMetric(adminUrl: string, name: string, label: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const lines = text.split('\n').filter(line => line.startsWith(`${name}{`) && line.includes(label))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
