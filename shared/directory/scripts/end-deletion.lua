-- KEYS the deletion of each map. ARGV id of the run. Another run may have begun to delete the same map since.
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end
