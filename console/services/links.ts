import { addressOf, given, place } from '../state/router.ts'

/** Returns environment and surface of the page, which pages about services keep. */
export function chosenSpans(): Record<string, string> {
  return given(place.value.query, 'environment', 'surface') as Record<string, string>
}

/** Returns the address of a service with the same choice of spans. */
export function addressOfService(name: string): string {
  return addressOf(`services/${encodeURIComponent(name)}`, chosenSpans())
}
