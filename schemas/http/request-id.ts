/** Header with the id of a request: the client may choose it, and every response has it (docs/api/requests.md#request-ids). */
export const REQUEST_ID_HEADER = 'x-request-id'

/**
 * Accepts the id that a client has chosen. UUIDs, ULIDs and hexadecimal ids pass. No key of this service and no token passes,
 * because these have underscores or dots: an id is logged and returned.
 */
export const REQUEST_ID = /^[A-Za-z0-9-]{1,64}$/
