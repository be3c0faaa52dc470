import { HOUR_S } from '../../schemas/units.ts'
import type { Inputs } from './inputs.ts'
import type { Plan } from './make-plan.ts'

/** A kind of process or server with its price. */
interface PricedLine {
  readonly name: string
  readonly count: number
  /** Size of one of them. */
  readonly cores: number
  readonly memory: number
  readonly disk: number
  readonly dollarsPerMonth: number
}

/** Prices of a plan. */
export interface PricedPlan {
  readonly lines: readonly PricedLine[]
  /** What is paid by amount. */
  readonly amounts: readonly { readonly name: string; readonly amount: string; readonly dollarsPerMonth: number }[]
  readonly dollarsPerMonth: number
  readonly dollarsPerBillionSpans: number
}

const HOURS_OF_MONTH = 730
const DAYS_OF_MONTH = HOURS_OF_MONTH / 24
const SECONDS_OF_MONTH = HOURS_OF_MONTH * HOUR_S
const GB = 1e9
/** Memory that belongs to the price of a core. */
const GB_OF_CORE = 2
/** Memory limits of a container of each (bench/goals.ts has what they use). */
const EDGE_GB = 0.25
const WORKER_GB = 0.5
const KEEPERS = 3
const KEEPER_CORES = 0.5
const KEEPER_GB = 1
/** Disk of a server that stores little. */
const LEAST_DISK_GB = 10

/** Prices a plan. All prices are inputs. Nothing is charged for what clients send. */
export function pricePlan(plan: Plan, inputs: Inputs): PricedPlan {
  const { redis, clickhouse } = plan
  const line = (name: string, count: number, cores: number, memory: number, disk: number): PricedLine => {
    const further = Math.max(0, memory - cores * GB_OF_CORE)
    const hourly = cores * inputs['core-hour'] + further * inputs['memory-gb-hour']
    const dollarsPerMonth = count * (hourly * HOURS_OF_MONTH + disk * inputs['disk-gb-month'])
    return { name, count, cores, memory, disk, dollarsPerMonth }
  }
  const copies = inputs['clickhouse-replicas']
  const lines = [
    line('edge', plan.edges, plan.edgeCores, EDGE_GB, 0),
    line('worker', plan.workers, plan.workerCores, WORKER_GB, 0),
    line(
      'Redis node',
      redis.nodes * (1 + inputs['redis-replicas']),
      redis.coresOfNode,
      redis.memoryOfNode,
      redis.diskOfNode,
    ),
    line(
      'ClickHouse node',
      clickhouse.shards * copies,
      clickhouse.coresOfNode,
      clickhouse.memoryOfNode,
      Math.max(clickhouse.diskNeeded / clickhouse.shards, LEAST_DISK_GB),
    ),
    // Replicated tables need one, in a majority of zones.
    ...(copies > 1 ? [line('ClickHouse Keeper', KEEPERS, KEEPER_CORES, KEEPER_GB, LEAST_DISK_GB)] : []),
  ]
  const crossed = (crossZoneBytesPerSpan(plan, inputs) * plan.meanRate * SECONDS_OF_MONTH) / GB
  const amounts = [
    {
      name: 'bucket',
      amount: `${amountOf(plan.objects)} GB`,
      dollarsPerMonth: plan.objects * inputs['object-gb-month'],
    },
    {
      name: 'between zones',
      amount: `${amountOf(crossed)} GB a month`,
      dollarsPerMonth: crossed * inputs['cross-zone-gb'],
    },
  ]
  const dollarsPerMonth = [...lines, ...amounts].reduce((sum, each) => sum + each.dollarsPerMonth, 0)
  const billionsPerMonth = (inputs['spans-per-day'] * DAYS_OF_MONTH) / 1e9
  return { lines, amounts, dollarsPerMonth, dollarsPerBillionSpans: dollarsPerMonth / billionsPerMonth }
}

/** Returns the bytes of a span that leave their zone: replicas are in other zones, all else is spread evenly. */
function crossZoneBytesPerSpan({ bytes }: Plan, inputs: Inputs): number {
  if (inputs.zones === 1) return 0
  const spread = bytes.redisReceived + bytes.redisSent + bytes.clickhouseReceived
  const copied = bytes.redisReceived * inputs['redis-replicas'] + bytes.stored * (inputs['clickhouse-replicas'] - 1)
  return (spread * (inputs.zones - 1)) / inputs.zones + copied
}

const amountOf = (amount: number) => Math.round(amount).toLocaleString('en')
