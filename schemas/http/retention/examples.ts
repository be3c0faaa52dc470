const byDefault = { days: 30, isDefault: true }

const retention = {
  maxDays: 30,
  kinds: {
    traces: { days: 14, isDefault: false },
    logs: byDefault,
    metrics: byDefault,
    findings: byDefault,
    sessions: byDefault,
    replay: { days: 7, isDefault: false },
    builds: byDefault,
    deadLetters: byDefault,
    releases: { days: null, isDefault: true },
  },
}

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  readRetention: { retention },
  replaceRetention: { retention },
} as const
