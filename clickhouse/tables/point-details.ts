/**
 * The column `details` of metric points: whatever no query asks for. It is empty for a point without any of it. Otherwise it is a
 * sequence of entries in the form of those of spans (span-details.ts), each of which begins with one of these bytes. The last entry
 * of min, max and the threshold counts.
 *
 *   min, max        Float64
 *   zeroThreshold   Float64
 *   quantile        quantile Float64, value Float64
 *   exemplar        type of the value UInt8 (`NumberType`), value Int64 or Float64, time UInt64, span id, trace id, attributes
 */
export const PointDetail = { min: 1, max: 2, zeroThreshold: 3, quantile: 4, exemplar: 5 } as const
/** A byte with which an entry begins. */
export type PointDetail = (typeof PointDetail)[keyof typeof PointDetail]
