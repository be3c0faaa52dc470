/**
 * Thresholds that a test installation reaches at once or within seconds. Each such alert is shown to fire on real metrics;
 * penstock.rules.test.yml shows its real threshold and its delay.
 */
export const LOWERED: Readonly<Record<string, readonly [from: string, to: string]>> = {
  PenstockEventLoopSlow: ['> 0.5', '> 0'],
  PenstockVersionsMixed: ['> 1', '> 0'],
  PenstockWorkersNotScraped: ['> 0', '>= 0'],
  PenstockClockOffset: ['> 10', '>= 0'],
  PenstockQueueOld: ['> 300', '> 3'],
  PenstockDeliveriesLate: ['> 300', '>= 0'],
  PenstockSurfaceOverShare: ['> 100', '> 0'],
  PenstockWatermarkBehind: ['> 900', '> 0'],
  PenstockDeadLettersRising: ['> 100', '> 0'],
  PenstockJobsRetried: ['> 50', '>= 0'],
  PenstockRedisMemoryHigh: ['> 0.6', '> 0'],
  PenstockRedisLogLarge: ['> 2.5', '> 0'],
  PenstockRedisForkSlow: ['> 0.4', '>= 0'],
  PenstockBackupOld: ['> 10800', '> 0'],
  PenstockBackupFails: ['> 5', '>= 0'],
  PenstockCommitsSlow: ['> 0.25', '> 0'],
  PenstockClickHouseParts: ['> 600', '> 0'],
  PenstockClickHouseDiskFull: ['< 0.15', '< 1'],
  PenstockDeduplicationWindowShort: ['> 0.8', '> 0'],
  PenstockStoreRetries: ['> 10', '> 0'],
  PenstockObjectStoreFails: ['> 0.05', '> 0'],
  PenstockUpkeepOld: ['> 3', '> 0'],
}
/** Returns the rules without delays, with short windows and the lowered thresholds. */
export function quickRules(text: string): string {
  const quick = text.replaceAll(/^( +for:) \w+$/gm, '$1 0s').replaceAll(/\[\d+[mh]\]/g, '[20s]')
  const rules = quick.split(/(?=^ +- alert:)/m)
  return rules
    .map(rule => {
      const [from, to] = LOWERED[/- alert: (\w+)/.exec(rule)?.[1] ?? ''] ?? ['', '']
      if (!rule.includes(from)) throw new Error(`a rule has no threshold ${from}:\n${rule}`)
      return rule.replace(from, to)
    })
    .join('')
}
