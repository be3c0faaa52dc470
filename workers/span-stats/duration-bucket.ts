/** Buckets of durations between a power of two and the next one. */
const BUCKETS_AN_OCTAVE = 32

/** Durations are counted up to this many nanoseconds, 52 days. Longer ones count as this. */
export const MAX_DURATION_NANO = 2 ** 52

/**
 * Returns the bucket of a duration in nanoseconds: 0 for 0, else k so that the duration is above 2^((k - 2) / 32) and at most
 * 2^((k - 1) / 32). These are the buckets of an exponential histogram of OpenTelemetry with scale 5.
 */
export function bucketOfDuration(nanoseconds: number): number {
  return nanoseconds === 0 ? 0 : 1 + Math.ceil(Math.log2(nanoseconds) * BUCKETS_AN_OCTAVE)
}
