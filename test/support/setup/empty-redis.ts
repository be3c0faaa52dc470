import { Redis } from 'ioredis'
import { sharedServices } from '../services/shared-services.ts'

/**
 * Empties the Redis of this vitest worker before each test file. An earlier file may have left an installation whose ClickHouse and
 * bucket are others.
 */
const redis = new Redis(sharedServices().redisUrl)
await redis.flushall()
redis.disconnect()
