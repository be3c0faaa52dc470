import type { Redis } from 'ioredis'

/** A place in a list that is ordered by time: of one thing in it. */
export interface ListPlace {
  readonly createdAtMs: number
  readonly id: string
}

/** `after` is the last one of the page before; it need not be there any more. */
export interface ListPage {
  readonly limit: number
  readonly after?: ListPlace | undefined
}

const WALK_PAGE = 500

/**
 * The names of an index by name, in the order of their bytes, by pages. What is added or removed meanwhile is met or not;
 * what stays is met once.
 */
export async function* walkNames(redis: Redis, index: string): AsyncGenerator<string[]> {
  let from = '-'
  for (;;) {
    const names = await redis.zrange(index, from, '+', 'BYLEX', 'LIMIT', 0, WALK_PAGE)
    if (names.length > 0) yield names
    if (names.length < WALK_PAGE) return
    from = `(${names.at(-1)}`
  }
}

/** KEYS index; ARGV limit, time and id of the last one seen. Answers ids and times; of one millisecond, by id downwards. */
const LIST_NEWEST = `
local limit = tonumber(ARGV[1])
local found = {}
local offset = 0
while #found < 2 * limit do
  local page = redis.call('ZRANGE', KEYS[1], ARGV[2], '-inf', 'BYSCORE', 'REV', 'LIMIT', offset, limit, 'WITHSCORES')
  if #page == 0 then break end
  for i = 1, #page, 2 do
    local isAfter = ARGV[3] == '' or tonumber(page[i + 1]) < tonumber(ARGV[2]) or page[i] < ARGV[3]
    if isAfter and #found < 2 * limit then
      table.insert(found, page[i])
      table.insert(found, page[i + 1])
    end
  end
  offset = offset + limit
end
return found
`

/**
 * A page of an index by time, newest first, as the records that `load` finds for its ids. Those that are gone by then
 * are left out and made up for, so that a page shorter than `limit` is the last one.
 */
export async function listNewest<T>(
  redis: Redis,
  index: string,
  { limit, after }: ListPage,
  load: (ids: string[]) => Promise<readonly (T | undefined)[]>,
): Promise<T[]> {
  const found: T[] = []
  let place = after
  while (found.length < limit) {
    const asked = limit - found.length
    const reply = await redis.eval(LIST_NEWEST, 1, index, asked, place?.createdAtMs ?? '+inf', place?.id ?? '')
    const words = reply as string[]
    const ids = words.filter((_, i) => i % 2 === 0)
    if (ids.length > 0) {
      for (const record of await load(ids)) if (record !== undefined) found.push(record)
      place = { id: ids.at(-1) ?? '', createdAtMs: Number(words.at(-1)) }
    }
    if (ids.length < asked) break
  }
  return found
}
