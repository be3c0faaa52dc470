-- The budget of a workspace: estimated memory of its uploads in Redis, by release (upload-budget.ts).

-- Estimated memory of an entry of a hash besides its texts, of a hash besides its entries, of the record of a completion besides
-- its key (measured: 600 bytes with a key of 190), and bytes of the longest staged member of a map.
local ENTRY_BYTES, HASH_BYTES, RECORD_BYTES, STAGED_MEMBER_BYTES = 100, 200, 400, 40

-- Estimated memory of the claims of one path. Measured: 1,010 bytes with a key of 190, and 230 for each further part.
local function claimsBytes(key, parts) return 550 + #key + 250 * parts end

-- Estimated memory of a declared path with a record of this length: an entry of the declared maps, and one of the staged maps if
-- it is to be uploaded.
local function declaredBytes(path, record) return 2 * ENTRY_BYTES + STAGED_MEMBER_BYTES + #path + record end

-- Takes bytes of a release off the sums, as far as they are charged.
local function lift(sums, release, bytes)
  local charged = tonumber(redis.call('HGET', sums, release) or '0')
  if charged <= bytes then redis.call('HDEL', sums, release) end
  if charged == 0 then return end
  if charged > bytes then redis.call('HINCRBY', sums, release, -bytes) end
  redis.call('HINCRBY', sums, 'total', -math.min(charged, bytes))
end

-- Uploads are charged until 24 h after the last one of their release, when all of them have expired.
local function add(sums, ends, release, bytes)
  redis.call('HINCRBY', sums, 'total', bytes)
  redis.call('HINCRBY', sums, release, bytes)
  redis.call('ZADD', ends, redis.call('TIME')[1] + UPLOAD_LIFETIME_S, release)
  redis.call('EXPIRE', sums, 2 * UPLOAD_LIFETIME_S)
  redis.call('EXPIRE', ends, 2 * UPLOAD_LIFETIME_S)
end

-- Adds the bytes unless the sum would exceed the limit, and returns whether it did. At most 100 releases that have expired are
-- taken off in one call.
local function charge(sums, ends, release, bytes, limit)
  local now = tonumber(redis.call('TIME')[1])
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 100)) do
    lift(sums, ended, math.huge)
    redis.call('ZREM', ends, ended)
  end
  local total = tonumber(redis.call('HGET', sums, 'total') or '0')
  if total + bytes > limit then return false end
  add(sums, ends, release, bytes)
  return true
end

-- As `charge`, with the claims that manifests keep in the sum.
local function chargeUpload(sums, ends, sealed, release, bytes)
  local kept = tonumber(redis.call('HGET', sealed, 'total') or '0')
  return charge(sums, ends, release, bytes, UPLOADS_MAX_BYTES - kept)
end
