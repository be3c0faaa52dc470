-- The claims of the parts of one path are a hash (upload-keys.ts), whose key ends with the SHA-256 of the path.
--- @include "uploads/budget"
local function pathOf(parts) return string.sub(parts, -64) end

-- Lets the claims of a path expire, and lists the path among those with claims.
local function expireClaims(parts, claimed)
  redis.call('EXPIRE', parts, UPLOAD_LIFETIME_S)
  redis.call('SADD', claimed, pathOf(parts))
  redis.call('EXPIRE', claimed, UPLOAD_LIFETIME_S)
end

-- Returns number of parts and SHA-256 of the map that was assembled from them, or nothing.
local function assembledOf(parts)
  local count, sha256 = string.match(redis.call('HGET', parts, 'assembled') or '', '^(%d+):(%x+)')
  return tonumber(count or 0), sha256
end
