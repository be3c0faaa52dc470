import type { Instrumentation } from '@opentelemetry/instrumentation'
import { AmqplibInstrumentation } from '@opentelemetry/instrumentation-amqplib'
import { AwsInstrumentation } from '@opentelemetry/instrumentation-aws-sdk'
import { BunyanInstrumentation } from '@opentelemetry/instrumentation-bunyan'
import { ExpressInstrumentation } from '@opentelemetry/instrumentation-express'
import { GraphQLInstrumentation } from '@opentelemetry/instrumentation-graphql'
import { GrpcInstrumentation } from '@opentelemetry/instrumentation-grpc'
import { HapiInstrumentation } from '@opentelemetry/instrumentation-hapi'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis'
import { KafkaJsInstrumentation } from '@opentelemetry/instrumentation-kafkajs'
import { KoaInstrumentation } from '@opentelemetry/instrumentation-koa'
import { MongoDBInstrumentation } from '@opentelemetry/instrumentation-mongodb'
import { MongooseInstrumentation } from '@opentelemetry/instrumentation-mongoose'
import { MySQLInstrumentation } from '@opentelemetry/instrumentation-mysql'
import { MySQL2Instrumentation } from '@opentelemetry/instrumentation-mysql2'
import { NestInstrumentation } from '@opentelemetry/instrumentation-nestjs-core'
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg'
import { PinoInstrumentation } from '@opentelemetry/instrumentation-pino'
import { RedisInstrumentation } from '@opentelemetry/instrumentation-redis'
import { RuntimeNodeInstrumentation } from '@opentelemetry/instrumentation-runtime-node'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { WinstonInstrumentation } from '@opentelemetry/instrumentation-winston'

/**
 * Instrumentations by the name that `OTEL_NODE_ENABLED_INSTRUMENTATIONS` and `OTEL_NODE_DISABLED_INSTRUMENTATIONS` have for them.
 * Those of files, DNS and sockets are left out: their spans say little and are many.
 */
const INSTRUMENTATIONS: Readonly<Record<string, () => Instrumentation>> = {
  amqplib: () => new AmqplibInstrumentation(),
  'aws-sdk': () => new AwsInstrumentation(),
  bunyan: () => new BunyanInstrumentation(),
  express: () => new ExpressInstrumentation(),
  graphql: () => new GraphQLInstrumentation(),
  grpc: () => new GrpcInstrumentation(),
  hapi: () => new HapiInstrumentation(),
  http: () => new HttpInstrumentation(),
  ioredis: () => new IORedisInstrumentation(),
  kafkajs: () => new KafkaJsInstrumentation(),
  koa: () => new KoaInstrumentation(),
  mongodb: () => new MongoDBInstrumentation(),
  mongoose: () => new MongooseInstrumentation(),
  mysql: () => new MySQLInstrumentation(),
  mysql2: () => new MySQL2Instrumentation(),
  'nestjs-core': () => new NestInstrumentation(),
  pg: () => new PgInstrumentation(),
  pino: () => new PinoInstrumentation(),
  redis: () => new RedisInstrumentation(),
  'runtime-node': () => new RuntimeNodeInstrumentation(),
  undici: () => new UndiciInstrumentation(),
  winston: () => new WinstonInstrumentation(),
}

/** Creates the instrumentations that the environment allows. */
export function createInstrumentations(env: Readonly<Record<string, string | undefined>>): Instrumentation[] {
  const list = (text: string | undefined) => (text ?? '').split(',').flatMap(name => name.trim() || [])
  const enabled = list(env.OTEL_NODE_ENABLED_INSTRUMENTATIONS)
  const disabled = list(env.OTEL_NODE_DISABLED_INSTRUMENTATIONS)
  return Object.entries(INSTRUMENTATIONS)
    .filter(([name]) => (enabled.length === 0 || enabled.includes(name)) && !disabled.includes(name))
    .map(([, create]) => create())
}
