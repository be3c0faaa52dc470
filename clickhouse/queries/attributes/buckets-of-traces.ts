/**
 * Returns the condition that rows of `spans` are in the buckets of traces, and of these traces: a read takes a granule or two of
 * each bucket. The day leaves out the parts of other days. `traces` is a condition on rows of any table with traces, the
 * workspace included.
 */
export function inBucketsOf(traces: string): string {
  const places = `SELECT day, start_bucket, trace_id FROM trace_buckets WHERE ${traces}`
  return `workspace_id = {workspaceId: String} AND (toDate(received_at), start_bucket, trace_id) IN (${places})`
}
