import type { QueueName } from '../../schemas/queues/names.ts'
import type { RedisQueue } from '../queue/queues.ts'
import type { QueueFeed } from '../queue/registry/queue-feed.ts'
import type { StoreName } from './check-installation.ts'
import type { InstallationWatch } from './installation-watch.ts'

/**
 * Returns the queues whose jobs a process may take: those of names whose stores belong to the installation. So a pool begins once
 * its stores are checked, and takes no more jobs while one differs. `storesOf` are the stores that the pool of a name writes to.
 */
export function verifiedQueues(
  feed: QueueFeed,
  watch: InstallationWatch,
  storesOf: (name: QueueName) => readonly StoreName[],
): QueueFeed {
  const of = (name: QueueName): readonly RedisQueue[] =>
    watch.mayUse(['directory', 'queues', ...storesOf(name)]) ? feed.of(name) : []
  return {
    get all() {
      return feed.all.filter(queue => of(queue.name).includes(queue))
    },
    of,
    onChange(listener) {
      const ends = [feed.onChange(listener), watch.onChecked(listener)]
      return () => {
        for (const end of ends) end()
      }
    },
  }
}
