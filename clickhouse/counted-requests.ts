/** The sum of the requests of all places of `request_counts`, where several rows may have the count of one place. */
export const COUNTED_REQUESTS = 'arraySum(mapValues(maxMap(map(place, requests))))'
