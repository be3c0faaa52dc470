import type { PageRequest } from '../../schemas/http/sessions/page-request.ts'

/** No other attributes of a request contain this. */
const NAME = '"pageRequest":'

/** Returns the attributes of the frame of a numbered request; empty for another request. */
export function pageAttributes(request: PageRequest | undefined): string {
  return request === undefined ? '' : `{${NAME}${JSON.stringify(request)}}`
}

/** Returns the number of a request, or undefined if its page did not number it. */
export function pageRequestOf({ attributes }: { readonly attributes: string }): PageRequest | undefined {
  return attributes.includes(NAME) ? JSON.parse(attributes).pageRequest : undefined
}
