/**
 * Values of `spans.http_status_code` that are not a status. 0 has always meant that there is none, so the status 0, which
 * clients report for a request without a response, has a value above all others.
 */
export const HttpStatusColumn = { none: 0, zero: 65_535 } as const
