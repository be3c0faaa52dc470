import { addressOf, given, place } from '../state/router.ts'

/** Returns time, environment and surface of the page, which pages about services keep. */
export function chosenSpans(): Record<string, string> {
  return given(place.value.query, 'last', 'environment', 'surface') as Record<string, string>
}

/** Returns the address of a service with the same choice of spans, or another time. */
export function addressOfService(name: string, last = chosenSpans().last): string {
  return addressOf(`services/${encodeURIComponent(name)}`, { ...chosenSpans(), ...(last && { last }) })
}
